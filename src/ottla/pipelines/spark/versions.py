"""Which Spark, Delta, Scala and Java belong together. Pure: the facts are passed in.

Delta is built against one minor version of Spark. Up to Delta 4.0 its artifact was
`delta-spark_2.13`; from 4.1 on the name carries Spark's minor version
(`delta-spark_4.1_2.13`), and one release of Delta comes for several of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ottla.pipelines.errors import PipelineError

JAVA_MAJORS: Final = (17, 21)
SCALA: Final = "2.13"


@dataclass(frozen=True, slots=True)
class Line:
    """One supported minor version of Spark and what goes with it."""

    delta_minors: tuple[str, ...]  # Delta's minor versions that exist for this Spark
    pyspark: str  # a pair that was run
    delta: str


# From the releases of Delta: 4.0 for Spark 4.0; 4.1 to 4.3 for Spark 4.0 and 4.1; 4.4 for all.
LINES: Final = {
    "4.0": Line(("4.0", "4.1", "4.2", "4.3", "4.4"), "4.0.0", "4.0.1"),
    "4.1": Line(("4.1", "4.2", "4.3", "4.4"), "4.1.1", "4.2.0"),
    "4.2": Line(("4.4",), "4.2.0", "4.4.0"),
}


@dataclass(frozen=True, slots=True)
class Installed:
    """What this machine has."""

    pyspark: str  # e.g. "4.0.0"
    spark: str  # the version of Spark's own jars: another one when SPARK_HOME says so
    scala: str  # e.g. "2.13"
    delta: str | None  # PyPI's delta-spark, None where it is not installed


def minor(version: str) -> str:
    """Return "4.1" for "4.1.0"."""
    return ".".join(version.split(".")[:2])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def pair(pyspark: str | None) -> str:
    """Return the sentence that names the pair to install; for this PySpark where there is one."""
    line = LINES.get(minor(pyspark)) if pyspark else None
    if line is None:
        line = LINES["4.0"]
        pyspark = line.pyspark
    delta = line.delta
    return f"This pair works: pip install 'pyspark=={pyspark}' 'delta-spark=={delta}'"


def delta_artifact(spark: str, delta: str) -> str:
    """Return the Maven coordinate of Delta for this Spark."""
    if _numbers(delta) < (4, 1):
        return f"io.delta:delta-spark_{SCALA}:{delta}"
    return f"io.delta:delta-spark_{minor(spark)}_{SCALA}:{delta}"


def kafka_artifact(spark: str) -> str:
    """Return the Maven coordinate of Spark's Kafka source, which has Spark's own version."""
    return f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{spark}"


FORMATS: Final = ("avro", "protobuf")
"""The formats for which Spark has a module apart from its own jars."""
NEEDED_FORMATS: Final = ("avro",)
"""Those that are read by that module alone: Protobuf is decoded in Python without it."""


def format_artifact(spark: str, name: str) -> str:
    """Return the Maven coordinate of Spark's module for a format, which has Spark's version."""
    return f"org.apache.spark:spark-{name}_{SCALA}:{spark}"


def check_spark(installed: Installed) -> None:
    """Raise PipelineError unless PySpark, Spark's jars and Scala are supported together."""
    if minor(installed.pyspark) not in LINES:
        supported = ", ".join(LINES)
        raise PipelineError(
            f"PySpark {installed.pyspark} is not supported (supported: {supported}). "
            f"{pair(installed.pyspark)}"
        )
    if minor(installed.spark) != minor(installed.pyspark):
        raise PipelineError(
            f"PySpark {installed.pyspark} would drive the jars of Spark {installed.spark}: "
            "SPARK_HOME points at another Spark. Type: unset SPARK_HOME"
        )
    if installed.scala != SCALA:
        raise PipelineError(
            f"Spark here is built for Scala {installed.scala}; Delta and the Kafka source come "
            f"for Scala {SCALA}. {pair(installed.pyspark)}"
        )


def check_delta(installed: Installed, delta: str, *, origin: str) -> None:
    """Raise PipelineError unless this Delta was built for the Spark that is installed.

    `origin` says where that Delta comes from, e.g. "delta-spark" or "packages".
    """
    line = LINES[minor(installed.pyspark)]
    if minor(delta) not in line.delta_minors:
        fits = ", ".join(line.delta_minors)
        raise PipelineError(
            f"PySpark {installed.pyspark} and Delta {delta} ({origin}) do not belong together: "
            f"for PySpark {minor(installed.pyspark)} there is Delta {fits}. "
            f"{pair(installed.pyspark)}"
        )
    # Delta 4.1 and later call methods that Spark 4.0.0 does not have yet.
    if _numbers(delta) >= (4, 1) and _numbers(installed.spark) < (4, 0, 1):
        raise PipelineError(
            f"Delta {delta} ({origin}) needs PySpark 4.0.1 or newer, this is "
            f"{installed.pyspark}. {pair(installed.pyspark)}"
        )


_DELTA_NAME: Final = re.compile(r"delta-(?:spark|core)(?:_(\d+\.\d+))?_(\d+\.\d+)")
_KAFKA_NAME: Final = re.compile(r"spark-sql-kafka-0-10_(\d+\.\d+)")
_FORMAT_NAME: Final = re.compile(rf"spark-({'|'.join(FORMATS)})_(\d+\.\d+)")


def check_artifact(installed: Installed, name: str, version: str, *, origin: str) -> None:
    """Check one artifact (name `delta-spark_2.13`, version `4.0.1`) against what is installed.

    Other artifacts than Delta, the Kafka source and the modules for formats pass. Raises
    PipelineError.
    """
    if match := _DELTA_NAME.fullmatch(name):
        built_for, scala = match.groups()
        _check_scala(installed, f"{name}:{version}", scala, origin)
        if built_for is not None and built_for != minor(installed.spark):
            raise PipelineError(
                f"{name}:{version} ({origin}) is for Spark {built_for}, this is Spark "
                f"{installed.spark}: use {delta_artifact(installed.spark, version)}. "
                f"{pair(installed.pyspark)}"
            )
        check_delta(installed, version, origin=origin)
    elif match := _KAFKA_NAME.fullmatch(name):
        fitting = kafka_artifact(installed.spark)
        _check_module(installed, f"{name}:{version}", version, match.group(1), fitting, origin)
    elif match := _FORMAT_NAME.fullmatch(name):
        fitting = format_artifact(installed.spark, match.group(1))
        _check_module(installed, f"{name}:{version}", version, match.group(2), fitting, origin)


def _check_module(
    installed: Installed, artifact: str, version: str, scala: str, fitting: str, origin: str
) -> None:
    """A module of Spark has Spark's own version."""
    _check_scala(installed, artifact, scala, origin)
    if minor(version) != minor(installed.spark):
        raise PipelineError(
            f"{artifact} ({origin}) is for Spark {minor(version)}, this is Spark "
            f"{installed.spark}: use {fitting}"
        )


def _check_scala(installed: Installed, artifact: str, scala: str, origin: str) -> None:
    if scala != installed.scala:
        raise PipelineError(
            f"{artifact} ({origin}) is built for Scala {scala}, Spark here for Scala "
            f"{installed.scala}. {pair(installed.pyspark)}"
        )


def check_running(spark: str, delta: str | None = None) -> None:
    """Check what a JVM says that it runs, whatever its jars are called. Raises PipelineError.

    `delta` is None where Delta's version is not known (yet).
    """
    line = LINES.get(minor(spark))
    if line is None:
        raise PipelineError(
            f"Spark {spark} runs here: Ottla's pipelines need Spark {', '.join(LINES)}. On AWS "
            "Glue that is version 6.0 (Glue 5.x has Spark 3.5): set the job's Glue version to 6.0"
        )
    if delta is not None and minor(delta) not in line.delta_minors:
        raise PipelineError(
            f"Spark {spark} runs with Delta {delta}, which was built for another Spark. "
            f"{pair(spark)}"
        )
