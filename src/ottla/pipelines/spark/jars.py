"""Which jars Spark is given: Delta and the Kafka source are added, nothing of the user's goes.

Packages come from four sources: session(packages=...), conf, PYSPARK_SUBMIT_ARGS and
spark-defaults.conf. Spark lets a later one overwrite an earlier one; here they add up.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark import versions
from ottla.pipelines.spark.versions import Installed

PACKAGES: Final = "spark.jars.packages"
JARS: Final = "spark.jars"
IVY_SETTINGS: Final = "spark.jars.ivySettings"

# What a folder of jars must hold besides Spark's own; Ivy finds the same by itself.
_NEEDED: Final = (
    "delta-spark",
    "delta-storage",
    "spark-sql-kafka-0-10",
    "spark-token-provider-kafka-0-10",
    "kafka-clients",
    "commons-pool2",
)
_JAR_NAME: Final = re.compile(r"(?P<name>.+?)-(?P<version>\d+(?:\.\d+)+[^/]*)\.jar")


@dataclass(frozen=True, slots=True)
class Given:
    """Settings for Spark's launcher that are there before session() adds its own."""

    settings: dict[str, str] = field(default_factory=dict)  # spark.* of files and arguments
    arguments: tuple[str, ...] = ()  # PYSPARK_SUBMIT_ARGS without what `settings` has

    @property
    def submit_arguments(self) -> str:
        return shlex.join(self.arguments)


def names(text: str | None) -> list[str]:
    """Split a list of Spark's, which is separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def read_given(environ: Mapping[str, str], spark_home: Path) -> Given:
    """Read spark-defaults.conf and PYSPARK_SUBMIT_ARGS, as Spark's launcher would."""
    folder = Path(environ.get("SPARK_CONF_DIR") or spark_home / "conf")
    settings = _read_defaults(folder / "spark-defaults.conf")
    arguments: list[str] = []
    words = iter(shlex.split(environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")))
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in ("--packages", "--jars", "--conf", "-c"):
            arguments.append(word)
            continue
        value = value if equals else next(words, "")
        if flag in ("--conf", "-c"):
            name, _, value = value.partition("=")
        else:
            name = PACKAGES if flag == "--packages" else JARS
        settings[name] = value
    return Given(settings, tuple(arguments))


def with_jars(given: Given, jars: str) -> Given:
    """Return what the launcher is given, with a list of jars, to which it adds the packages'."""
    arguments = given.arguments or ("pyspark-shell",)
    return replace(given, arguments=("--jars", jars, *arguments)) if jars else given


def _read_defaults(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    settings = {}
    for line in file.read_text().splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            name, value, *_ = [*re.split(r"\s*[=\s]\s*", line, maxsplit=1), ""]
            settings[name] = value
    return settings


def list_jars(jars: str | Path | Iterable[str | Path] | None) -> list[str]:
    """Return the jars as Spark takes them; a folder stands for all of its jars.

    Raises PipelineError for a file that is not there.
    """
    if jars is None:
        return []
    found: list[str] = []
    for jar in [jars] if isinstance(jars, str | Path) else jars:
        for path in names(str(jar)):
            if "://" in path or "*" in path:
                found.append(path)
            elif Path(path).is_dir():
                found += sorted(str(file.resolve()) for file in Path(path).glob("*.jar"))
            elif Path(path).is_file():
                found.append(str(Path(path).resolve()))
            else:
                raise PipelineError(f"jars: there is no file {path}")
    return found


def parse_jar(path: str) -> tuple[str, str] | None:
    """Return ("delta-spark_2.13", "4.0.1") for ".../delta-spark_2.13-4.0.1.jar"."""
    match = _JAR_NAME.fullmatch(path.rsplit("/", 1)[-1])
    return (match["name"], match["version"]) if match else None


def without_own(jars: Sequence[str], own: Set[str]) -> list[str]:
    """Return the jars whose artifact Spark does not have itself; `own` has those names.

    Spark loads its own classes first, so that the others would not be used.
    """
    kept = []
    for jar in jars:
        parsed = parse_jar(jar)
        # Ivy's folder puts the organisation before the name, separated by "_".
        name = parsed[0] if parsed else ""
        if not any(name == one or name.endswith(f"_{one}") for one in own):
            kept.append(jar)
    return kept


def check_jars(installed: Installed, jars: Sequence[str]) -> None:
    """Check the names of jars against what is installed. Raises PipelineError."""
    for jar in jars:
        if parsed := parse_jar(jar):
            versions.check_artifact(installed, *parsed, origin="jars")


def _parse_package(package: str) -> tuple[str, str]:
    parts = package.split(":")
    if len(parts) != 3 or not all(parts):
        raise PipelineError(
            f"packages: {package!r} is not a Maven coordinate; write group:artifact:version, "
            "for instance org.postgresql:postgresql:42.7.7"
        )
    return parts[1], parts[2]


def wanted_packages(
    installed: Installed, given: Sequence[str], jars: Sequence[str], formats: Sequence[str] = ()
) -> list[str]:
    """Return the packages for Ivy: all that are given, then Delta, the Kafka source and `formats`.

    One that is given, or that lies among `jars`, is not added again. Raises PipelineError
    where one of them does not belong to the Spark that is installed.
    """
    packages = list(dict.fromkeys(given))
    present = [parsed[0] for jar in jars if (parsed := parse_jar(jar))]
    for package in packages:
        name, version = _parse_package(package)
        versions.check_artifact(installed, name, version, origin="packages")
        present.append(name)
    check_jars(installed, jars)
    stems = {name.split("_")[0] for name in present}
    if jars and {"delta-spark", "spark-sql-kafka-0-10"} & stems and not given:
        missing = [name for name in _NEEDED if name not in stems]
        if missing and not any("*" in jar for jar in jars):
            raise PipelineError(
                f"jars: {', '.join(missing)} missing. Give all of "
                f"{', '.join(_NEEDED)}, or none of them to have Spark fetch them"
            )
    if "delta-spark" not in stems:
        packages.append(_delta(installed))
    if "spark-sql-kafka-0-10" not in stems:
        packages.append(versions.kafka_artifact(installed.spark))
    packages += [
        versions.format_artifact(installed.spark, name)
        for name in dict.fromkeys(formats)
        if f"spark-{name}" not in stems
    ]
    return packages


def _delta(installed: Installed) -> str:
    delta = installed.delta or versions.LINES[versions.minor(installed.pyspark)].delta
    versions.check_delta(installed, delta, origin="delta-spark")
    return versions.delta_artifact(installed.spark, delta)
