"""`session`: a SparkSession with Kafka and Delta that works the first time.

Everything that can be known before the JVM starts is checked before it starts. A session that
is running already, or a JVM that spark-submit or AWS Glue started, keeps all its settings: only
what is not set there is set.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError, explain, require_pyspark
from ottla.pipelines.spark import jars as jar_lists
from ottla.pipelines.spark import versions
from ottla.pipelines.spark.java import find_java
from ottla.pipelines.spark.versions import Installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("ottla.pipelines")

EXTENSIONS: Final = "spark.sql.extensions"
DELTA_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG: Final = "spark.sql.catalog.spark_catalog"
DELTA_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
KAFKA_SOURCE: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"

# Delta rebuilds the state of a table at each commit with 50 tasks; for a stream of small
# commits that is most of the time (2.3 s against 1.1 s a batch on two cores).
_DEFAULTS: Final = {"spark.databricks.delta.snapshotPartitions": "2"}
# One machine needs no name of its own, which may not resolve, and nobody else's connections.
_LOCAL_DEFAULTS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def session(
    app: str,
    *,
    master: str = "local[*]",
    packages: Iterable[str] = (),
    jars: str | Path | Iterable[str | Path] | None = None,
    ivy_settings: str | Path | None = None,
    conf: Mapping[str, Any] = {},
) -> SparkSession:
    """Return a SparkSession that reads Kafka and writes Delta.

    Java, PySpark, Delta and Scala are checked against each other before the JVM starts.
    A session that runs already (AWS Glue, a notebook) is returned as it is.

    Args:
        app: the application's name.
        master: where Spark runs; `local[*]` is this machine with all its cores.
        packages: Maven coordinates to add to Delta and the Kafka source.
        jars: jar files, or a folder of them, for machines that do not reach Maven Central.
        ivy_settings: an ivysettings.xml that names your own repository.
        conf: Spark's settings; they win over Ottla's own. `spark.jars.packages`,
            `spark.jars` and `spark.sql.extensions` add to what is needed.

    Raises:
        PipelineError: something is missing or does not fit; the line says what to type.
    """
    require_pyspark()
    if isinstance(packages, str):
        packages = jar_lists.names(packages)
    settings = {str(name): _text(value) for name, value in conf.items()}
    if running := _running_session():
        _leave_as_it_is(running, settings)
        return running
    if os.environ.get("SPARK_REMOTE"):
        raise PipelineError(
            "SPARK_REMOTE is set: Ottla's pipelines run in classic Spark, not over Spark "
            "Connect. Type: unset SPARK_REMOTE"
        )
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _start(app, None, _beside_submitted(settings))
    if _jvm_runs():
        return _start(app, master, _defaults(master) | settings)
    installed = find_installed()
    versions.check_spark(installed)
    given = jar_lists.read_given(os.environ, _spark_home())
    listed = jar_lists.list_jars(jars)
    wished = [*packages]
    for source in (settings, given.settings):
        wished += jar_lists.names(source.get(jar_lists.PACKAGES))
        listed += jar_lists.names(source.get(jar_lists.JARS))
    settings = _defaults(master) | given.settings | settings
    wanted = jar_lists.wanted_packages(installed, wished, listed)
    settings |= {jar_lists.PACKAGES: ",".join(wanted), jar_lists.JARS: ",".join(listed)}
    if ivy_settings is not None:
        settings[jar_lists.IVY_SETTINGS] = _existing_file(ivy_settings)
    java = find_java(os.environ)
    log.info("Spark %s runs on Java %d (%s)", installed.spark, java.major, java.origin)
    with _launch_environment(java.home, given):
        return _start(app, master, settings)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _existing_file(file: str | Path) -> str:
    if not Path(file).is_file():
        raise PipelineError(f"ivy_settings: there is no file {file}")
    return str(Path(file).resolve())


def _defaults(master: str) -> dict[str, str]:
    return _DEFAULTS | (_LOCAL_DEFAULTS if master.startswith("local") else {})


def find_installed() -> Installed:
    """Read the versions of what is installed, without importing or starting any of it."""
    try:
        delta = version("delta-spark")
    except PackageNotFoundError:
        delta = None
    for jar in (_spark_home() / "jars").glob("spark-core_*.jar"):
        if parsed := jar_lists.parse_jar(jar.name):
            name, spark = parsed
            return Installed(version("pyspark"), spark, name.rsplit("_", 1)[1], delta)
    raise PipelineError(
        f"There are no jars of Spark in {_spark_home() / 'jars'}. "
        f"{versions.pair(version('pyspark'))}"
    )


def _spark_home() -> Path:
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def _running_session() -> SparkSession | None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    # A context without a session, as some notebooks give: the session takes its settings.
    return SparkSession.getActiveSession() or SparkSession(SparkContext._active_spark_context)


def _jvm_runs() -> bool:
    """Tell whether the JVM of a former session still runs; it keeps the jars it started with."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def _beside_submitted(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings for a JVM that spark-submit or AWS Glue started: what was set there stays.

    Its jars were chosen when it started; only the list of extensions is added to.
    """
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # SparkConf asks the JVM, once there is a connection
    submitted: dict[str, str] = dict(SparkConf().getAll())
    extensions = ",".join((submitted.get(EXTENSIONS, ""), settings.get(EXTENSIONS, "")))
    defaults = _defaults(submitted.get("spark.master", ""))
    return {**defaults, **settings, **submitted, EXTENSIONS: extensions}


def _leave_as_it_is(running: SparkSession, wished: Mapping[str, str]) -> None:
    check_classes(running)
    other = sorted(name for name, value in wished.items() if running.conf.get(name, "") != value)
    if other:
        log.warning(
            "A Spark session runs already and is left as it is; not in force: %s", ", ".join(other)
        )


@contextlib.contextmanager
def _launch_environment(java_home: Path | None, given: jar_lists.Given) -> Iterator[None]:
    """Set what Spark's launcher reads, while it starts; the JVM keeps its own copy."""
    names = ("JAVA_HOME", "PYSPARK_SUBMIT_ARGS")
    before = {name: os.environ.get(name) for name in names}
    wanted = {
        "JAVA_HOME": str(java_home) if java_home else None,
        "PYSPARK_SUBMIT_ARGS": given.submit_arguments or "pyspark-shell",
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

    pair = versions.pair(version("pyspark"))
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
    return spark


def _with_delta(settings: Mapping[str, str]) -> dict[str, str]:
    extensions = list(dict.fromkeys(jar_lists.names(settings.get(EXTENSIONS))))
    if DELTA_EXTENSION not in extensions:
        extensions.append(DELTA_EXTENSION)
    filled = {name: value for name, value in settings.items() if value != ""}
    return {CATALOG: DELTA_CATALOG} | filled | {EXTENSIONS: ",".join(extensions)}


def check_classes(spark: SparkSession) -> None:
    """Ask the JVM for Delta and the Kafka source. Raises PipelineError where one does not load."""
    from py4j.protocol import Py4JError, Py4JJavaError

    jvm: Any = spark._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    pair = versions.pair(version("pyspark"))
    for name in (DELTA_EXTENSION, DELTA_CATALOG, KAFKA_SOURCE):
        try:
            jvm.java.lang.Class.forName(name, True, loader)
        except Py4JJavaError as error:
            words = str(error)
            missing = f"ClassNotFoundException: {name}" in words
            other = f"{name} does not load: its jar was built for another Spark or Scala. {pair}"
            raise PipelineError((explain(words, pair) if missing else None) or other) from error
    with contextlib.suppress(Py4JError):  # an old Delta that does not say its version
        delta = getattr(getattr(jvm.io.delta, "package$"), "MODULE$").VERSION()
        versions.check_running(spark.version, str(delta))
    extensions = jar_lists.names(spark.conf.get(EXTENSIONS, ""))
    if DELTA_EXTENSION not in extensions or not spark.conf.get(CATALOG, ""):
        raise PipelineError(
            "The running Spark session was started without Delta. Stop it first, or start it with "
            f"--conf {EXTENSIONS}={DELTA_EXTENSION} --conf {CATALOG}={DELTA_CATALOG}"
        )
