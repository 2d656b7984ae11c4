"""What is sent to AWS Glue to make a job."""

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.glue.definition import (
    KAFKA_JARS,
    check_version,
    conf,
    jar_path,
    job_definition,
)


def test_settings_are_chained_in_one_argument() -> None:
    assert conf({"spark.sql.shuffle.partitions": "8"}) == (
        "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension"
        " --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"
        " --conf spark.sql.shuffle.partitions=8"
    )


def test_extensions_of_the_users_own_add_to_deltas() -> None:
    chained = conf({"spark.sql.extensions": "my.Extension"})

    assert chained.startswith(
        "spark.sql.extensions=my.Extension,io.delta.sql.DeltaSparkSessionExtension --conf "
    )


def test_a_setting_that_the_argument_cannot_hold_is_refused() -> None:
    with pytest.raises(PipelineError, match=r"spark\.app\.name: a value with a space"):
        conf({"spark.app.name": "my flights"})


@pytest.mark.parametrize("version", ["5.0", "5.1", "4.0", "7.0"])
def test_other_versions_of_glue_are_refused_in_a_sentence(version: str) -> None:
    with pytest.raises(PipelineError, match=f"Glue {version} is not supported") as caught:
        check_version(version)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("is_stream", "command"), [(True, "gluestreaming"), (False, "glueetl")])
def test_a_definition_points_at_what_is_uploaded(is_stream: bool, command: str) -> None:
    made = job_definition(
        "flights",
        version="6.0",
        location="s3://bucket/jobs/",
        role="role",
        script="flights_glue.py",
        wheel="w.whl",
        files=["flights.toml", "clean.py"],
        settings={},
        is_stream=is_stream,
    )

    assert made["GlueVersion"] == "6.0"
    assert made["Command"]["Name"] == command
    assert made["Command"]["ScriptLocation"] == "s3://bucket/jobs/flights_glue.py"
    arguments = made["DefaultArguments"]
    assert arguments["--datalake-formats"] == "delta"
    assert arguments["--additional-python-modules"] == "s3://bucket/jobs/w.whl"
    assert arguments["--extra-files"] == "s3://bucket/jobs/flights.toml,s3://bucket/jobs/clean.py"
    assert len(arguments["--extra-jars"].split(",")) == len(KAFKA_JARS)
    assert "s3://bucket/jobs/jars/kafka-clients-3.9.1.jar" in arguments["--extra-jars"]


def test_the_jars_are_where_maven_keeps_them() -> None:
    assert jar_path("org.apache.kafka:kafka-clients:3.9.1") == (
        "org/apache/kafka/kafka-clients/3.9.1/kafka-clients-3.9.1.jar"
    )
