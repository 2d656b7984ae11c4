"""The definition of a job on AWS Glue: the arguments of its API's CreateJob. Pure.

Glue 6.0 has Spark 4.1.1, Scala 2.13, Python 3.13, Java 17 and Delta 4.2.0. The versions of the
Kafka source's jars are those of Spark 4.1.1's own build (kafka.version, commons-pool2.version).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.pipelines.errors import PipelineError

VERSIONS: Final = ("6.0",)
_SPARK: Final = "4.1.1"
KAFKA_JARS: Final = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{_SPARK}",
    f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{_SPARK}",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
_DELTA: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# Without an end a job runs as a stream; else it is billed and restarted as a batch job.
_STREAM, _BATCH = "gluestreaming", "glueetl"


def check_version(version: str) -> None:
    """Raise PipelineError unless this version of Glue is supported."""
    if version not in VERSIONS:
        raise PipelineError(
            f"AWS Glue {version} is not supported (supported: {', '.join(VERSIONS)}): Ottla's "
            "pipelines need Spark 4, and Glue 5.x has Spark 3.5. Type: --glue 6.0"
        )


def jar_file(coordinate: str) -> str:
    """Return the file name of a Maven coordinate's jar."""
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def jar_path(coordinate: str) -> str:
    """Return the path of a Maven coordinate's jar in a Maven repository."""
    group, artifact, version = coordinate.split(":")
    return f"{group.replace('.', '/')}/{artifact}/{version}/{jar_file(coordinate)}"


def conf(settings: Mapping[str, str]) -> str:
    """Return Spark's settings as the value of Glue's one argument `--conf`.

    Glue takes the argument once; further settings follow in its value, each after ` --conf `.
    Raises PipelineError for a value with a space, which ends the setting there.
    """
    chained = {**_DELTA, **settings}
    extensions = [part for part in settings.get("spark.sql.extensions", "").split(",") if part]
    if extensions:
        wanted = dict.fromkeys([*extensions, _DELTA["spark.sql.extensions"]])
        chained["spark.sql.extensions"] = ",".join(wanted)
    for name, value in chained.items():
        if any(character.isspace() for character in name + value):
            raise PipelineError(
                f"[spark.conf] {name}: a value with a space cannot be given to AWS Glue: {value!r}"
            )
    return " --conf ".join(f"{name}={value}" for name, value in chained.items())


def job_definition(
    name: str,
    *,
    version: str,
    location: str,
    role: str,
    script: str,
    wheel: str,
    files: Sequence[str],
    settings: Mapping[str, str],
    is_stream: bool,
) -> dict[str, Any]:
    """Return the arguments of CreateJob.

    `location` is the folder in S3 that everything is uploaded to; `script`, `wheel` and `files`
    are names in it, and the Kafka source's jars lie in its folder `jars`.

    Raises PipelineError: a version of Glue or a setting that cannot be given to it.
    """
    check_version(version)
    at = location.rstrip("/")
    return {
        "Name": name,
        "Role": role,
        "GlueVersion": version,
        "Command": {
            "Name": _STREAM if is_stream else _BATCH,
            "ScriptLocation": f"{at}/{script}",
            "PythonVersion": "3",
        },
        "DefaultArguments": {
            "--datalake-formats": "delta",
            "--conf": conf(settings),
            "--additional-python-modules": f"{at}/{wheel}",
            "--extra-files": ",".join(f"{at}/{file}" for file in files),
            "--extra-jars": ",".join(f"{at}/jars/{jar_file(jar)}" for jar in KAFKA_JARS),
        },
        # A second run on one checkpoint would be refused.
        "ExecutionProperty": {"MaxConcurrentRuns": 1},
        "WorkerType": "G.1X",
        "NumberOfWorkers": 2,
    }
