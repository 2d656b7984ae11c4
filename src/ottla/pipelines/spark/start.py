"""`session`: a SparkSession with Kafka and Delta that works the first time.

Everything that can be known before the JVM starts is checked before it starts. A session that
is running already, or a JVM that spark-submit or AWS Glue started, keeps all its settings: only
what is not set there is set.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.failures.sentences import explain
from ottla.pipelines.spark import cache, defaults, interrupt, resolved, versions
from ottla.pipelines.spark import class_archive as class_archives
from ottla.pipelines.spark import jars as jar_lists
from ottla.pipelines.spark.class_archive import ClassArchive
from ottla.pipelines.spark.java import Java, find_java
from ottla.pipelines.spark.jvm.classes import why_not_loaded
from ottla.pipelines.spark.jvm.context import (
    class_path,
    jvm_runs,
    running_session,
    spark_home,
    submitted_settings,
)
from ottla.pipelines.spark.jvm.jar_versions import delta_version
from ottla.pipelines.spark.jvm.output import close_output_at_exit
from ottla.pipelines.spark.jvm.process import process_id
from ottla.pipelines.spark.versions import Installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("ottla.pipelines")

EXTENSIONS: Final = "spark.sql.extensions"
DELTA_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG: Final = "spark.sql.catalog.spark_catalog"
DELTA_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
KAFKA_SOURCE: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"

# Set in a session whose JVM session() started: its logging is Ottla's to route.
STARTED_BY_OTTLA: Final = "spark.ottla.started"
CLASS_PATH: Final = "spark.driver.extraClassPath"
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOCAL_IP: Final = "SPARK_LOCAL_IP"  # without it Spark warns of a host name that is loopback


def session(
    app: str,
    *,
    master: str = "local[*]",
    packages: Iterable[str] = (),
    formats: Iterable[str] = (),
    jars: str | Path | Iterable[str | Path] | None = None,
    ivy_settings: str | Path | None = None,
    conf: Mapping[str, Any] = {},
    class_archive: bool = True,
) -> SparkSession:
    """Return a SparkSession that reads Kafka and writes Delta.

    Java, PySpark, Delta and Scala are checked against each other before the JVM starts.
    A session that runs already (AWS Glue, a notebook) is returned as it is.

    Args:
        app: the application's name.
        master: where Spark runs; `local[*]` is this machine with all its cores.
        packages: Maven coordinates to add to Delta and the Kafka source.
        formats: "avro" or "protobuf", for topics with a schema registry: adds Spark's module for
            it. Protobuf is read without it, too, but slower.
        jars: jar files, or a folder of them, for machines that do not reach Maven Central.
        ivy_settings: an ivysettings.xml that names your own repository.
        conf: Spark's settings; they win over Ottla's own. `spark.jars.packages`,
            `spark.jars` and `spark.sql.extensions` add to what is needed.
        class_archive: let the JVM keep an archive of its classes in the user's cache folder,
            which shortens the next starts (see docs/pipelines.md).

    Raises:
        PipelineError: something is missing or does not fit; the line says what to type.
    """
    require_pyspark()
    if isinstance(packages, str):
        packages = jar_lists.names(packages)
    formats = _known_formats(formats)
    settings = {str(name): _text(value) for name, value in conf.items()}
    if running := running_session():
        _leave_as_it_is(running, settings)
        return running
    if os.environ.get("SPARK_REMOTE"):
        raise PipelineError(
            "SPARK_REMOTE is set: Ottla's pipelines run in classic Spark, not over Spark "
            "Connect. Type: unset SPARK_REMOTE"
        )
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        versions.check_running(_pyspark_version())
        return _start(app, None, _beside_submitted(settings))
    if jvm_runs():
        return _start(app, master, _defaults(master) | settings)
    installed = find_installed()
    versions.check_spark(installed)
    given = jar_lists.read_given(os.environ, spark_home())
    listed = jar_lists.list_jars(jars)
    requested = [*packages]
    for source in (settings, given.settings):
        requested += jar_lists.names(source.get(jar_lists.PACKAGES))
        listed += jar_lists.names(source.get(jar_lists.JARS))
    settings = given.settings | settings
    master = settings.get("spark.master", master)
    settings = _defaults(master) | settings
    wanted = jar_lists.wanted_packages(installed, requested, listed, formats)
    if ivy_settings is not None:
        settings[jar_lists.IVY_SETTINGS] = _existing_file(ivy_settings)
    folder = cache.folder(os.environ)
    found = None if requested or not wanted else resolved.read(folder, wanted)
    settings |= {jar_lists.PACKAGES: ",".join(wanted), jar_lists.JARS: ",".join(listed)}
    if found is not None:
        settings |= _take_found(found, listed, settings, is_local=defaults.is_local(master))
    java = find_java(os.environ)
    log.info("Spark %s runs on Java %d (%s)", installed.spark, java.major, java.origin)
    # A start that asks Ivy has another class path than the next one, which does not.
    lasting = found is not None or bool(requested) or not wanted
    archive = _find_archive(folder, java, settings) if class_archive and lasting else None
    # Set by PySpark after the start, the list would hide the jars of the packages from executors.
    given = jar_lists.with_jars(given, settings.pop(jar_lists.JARS))
    with _launch_environment(java.home, given, settings, archive):
        spark = _start(app, master, settings | {STARTED_BY_OTTLA: "true"})
    if wanted and found is None and not requested:
        _remember_jars(folder, wanted, listed, spark)
    if archive is not None and not archive.is_ready:
        _finish_at_exit(archive, spark)
    return spark


def _take_found(
    found: list[str], listed: list[str], settings: Mapping[str, str], *, is_local: bool
) -> dict[str, str]:
    """Return the settings for jars that need no Ivy.

    The JVM of a local session loads them from where they are. From `spark.jars` Spark would copy
    them first, and the JVM could archive none of their classes.
    """
    if not is_local:
        return {jar_lists.PACKAGES: "", jar_lists.JARS: ",".join([*listed, *found])}
    own = {parsed[0] for jar in _own_jars() if (parsed := jar_lists.parse_jar(jar))}
    given = settings.get(CLASS_PATH, "")
    loaded = jar_lists.without_own(found, own)
    return {
        jar_lists.PACKAGES: "",
        CLASS_PATH: ":".join(part for part in (given, *loaded) if part),
    }


def _own_jars() -> list[str]:
    return [jar.name for jar in (spark_home() / "jars").glob("*.jar")]


def _find_archive(folder: Path, java: Java, settings: Mapping[str, str]) -> ClassArchive | None:
    options = " ".join((settings.get(JAVA_OPTIONS, ""), os.environ.get("SPARK_SUBMIT_OPTS", "")))
    jars = [jar for jar in settings.get(CLASS_PATH, "").split(":") if jar]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return class_archives.find(folder, java.executable, jars, spark_home(), options, os.environ)
    except OSError as error:
        log.info("No class archive: %s", error)
        return None


def _remember_jars(
    folder: Path, packages: list[str], listed: list[str], spark: SparkSession
) -> None:
    jars = jar_lists.names(spark.sparkContext.getConf().get(jar_lists.JARS, ""))
    try:
        resolved.write(folder, packages, jars, listed)
    except OSError as error:
        log.info("The jars' paths are not remembered: %s", error)


def _finish_at_exit(archive: ClassArchive, spark: SparkSession) -> None:
    atexit.register(class_archives.finish_later, archive, process_id(), class_path(spark))
    close_output_at_exit(spark)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _known_formats(formats: Iterable[str]) -> list[str]:
    given = [formats] if isinstance(formats, str) else [*formats]
    for name in given:
        if name not in versions.FORMATS:
            raise PipelineError(
                f"formats={name!r}: write {' or '.join(map(repr, versions.FORMATS))}"
            )
    return given


def _existing_file(file: str | Path) -> str:
    if not Path(file).is_file():
        raise PipelineError(f"ivy_settings: there is no file {file}")
    return str(Path(file).resolve())


def _defaults(master: str) -> dict[str, str]:
    return defaults.defaults(
        master,
        cores=len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        python=sys.executable,
        environ=os.environ,
        terminal=sys.stderr is not None and sys.stderr.isatty(),
    )


def _pyspark_version() -> str:
    """Return PySpark's version also where pip did not install it, as on AWS Glue."""
    import pyspark

    return str(pyspark.__version__)


def find_installed() -> Installed:
    """Read the versions of what is installed, without importing or starting any of it."""
    try:
        delta = version("delta-spark")
    except PackageNotFoundError:
        delta = None
    for jar in (spark_home() / "jars").glob("spark-core_*.jar"):
        if parsed := jar_lists.parse_jar(jar.name):
            name, spark = parsed
            return Installed(_pyspark_version(), spark, name.rsplit("_", 1)[1], delta)
    raise PipelineError(
        f"There are no jars of Spark in {spark_home() / 'jars'}. "
        f"{versions.pair(version('pyspark'))}"
    )


def _beside_submitted(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings for a JVM that spark-submit or AWS Glue started: what was set there stays.

    Its jars were chosen when it started; only the list of extensions is added to.
    """
    submitted = submitted_settings()
    extensions = ",".join((submitted.get(EXTENSIONS, ""), settings.get(EXTENSIONS, "")))
    added = _defaults(submitted.get("spark.master", "yarn"))
    return {**added, **settings, **submitted, EXTENSIONS: extensions}


def _leave_as_it_is(running: SparkSession, wished: Mapping[str, str]) -> None:
    check_classes(running)
    other = sorted(name for name, value in wished.items() if running.conf.get(name, "") != value)
    if other:
        log.warning(
            "A Spark session runs already and is left as it is; not in force: %s", ", ".join(other)
        )


@contextlib.contextmanager
def _launch_environment(
    java_home: Path | None,
    given: jar_lists.Given,
    settings: Mapping[str, str],
    archive: ClassArchive | None,
) -> Iterator[None]:
    """Set what Spark's launcher reads, while it starts; the JVM keeps its own copy."""
    names = ("JAVA_HOME", "PYSPARK_SUBMIT_ARGS", "PYSPARK_PYTHON", "SPARK_SUBMIT_OPTS")
    before = {name: os.environ.get(name) for name in (*names, _LOCAL_IP)}
    options = (before["SPARK_SUBMIT_OPTS"], archive.options if archive else None)
    wanted = {
        "JAVA_HOME": str(java_home) if java_home else None,
        "PYSPARK_SUBMIT_ARGS": given.submit_arguments or "pyspark-shell",
        "PYSPARK_PYTHON": settings.get(defaults.PYTHON) or before["PYSPARK_PYTHON"],
        "SPARK_SUBMIT_OPTS": " ".join(option for option in options if option) or None,
        _LOCAL_IP: before[_LOCAL_IP] or settings.get("spark.driver.host"),
    }
    _set_environment(wanted)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _start(app: str, master: str | None, settings: Mapping[str, str]) -> SparkSession:
    """Start the session in the JVM that runs, or in a new one; `master` None: as submitted."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    pair = versions.pair(_pyspark_version())
    handler = interrupt.current_handler()
    try:
        builder = SparkSession.builder.appName(app)
        if master is not None:
            builder = builder.master(settings.get("spark.master", master))
        for name, value in _with_delta(settings).items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    except (Py4JError, PySparkException) as error:
        sentence = explain(str(error), pair)
        raise PipelineError(sentence or f"Spark did not start: {error}") from error
    try:
        check_classes(spark)
    except PipelineError:
        spark.stop()
        raise
    if python := settings.get(defaults.PYTHON):
        # PySpark reads it from the environment alone.
        spark.sparkContext.pythonExec = python
    interrupt.handle(spark, handler)
    return spark


def _with_delta(settings: Mapping[str, str]) -> dict[str, str]:
    extensions = list(dict.fromkeys(jar_lists.names(settings.get(EXTENSIONS))))
    if DELTA_EXTENSION not in extensions:
        extensions.append(DELTA_EXTENSION)
    filled = {name: value for name, value in settings.items() if value != ""}
    return {CATALOG: DELTA_CATALOG} | filled | {EXTENSIONS: ",".join(extensions)}


def check_classes(spark: SparkSession) -> None:
    """Ask the JVM for Delta and the Kafka source. Raises PipelineError where one does not load."""
    versions.check_running(spark.version)
    pair = versions.pair(_pyspark_version())
    for name in (DELTA_EXTENSION, DELTA_CATALOG, KAFKA_SOURCE):
        if (words := why_not_loaded(spark, name)) is not None:
            missing = f"ClassNotFoundException: {name}" in words
            other = f"{name} does not load: its jar was built for another Spark or Scala. {pair}"
            raise PipelineError((explain(words, pair) if missing else None) or other)
    if (delta := delta_version(spark)) is not None:
        versions.check_running(spark.version, delta)
    extensions = jar_lists.names(spark.conf.get(EXTENSIONS, ""))
    if DELTA_EXTENSION not in extensions or not spark.conf.get(CATALOG, ""):
        raise PipelineError(
            "The running Spark session was started without Delta. Stop it first, or start it with "
            f"--conf {EXTENSIONS}={DELTA_EXTENSION} --conf {CATALOG}={DELTA_CATALOG}"
        )
