"""Which versions belong together, and the sentence for those that do not."""

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark import versions
from ottla.pipelines.spark.versions import Installed

SPARK_40 = Installed("4.0.0", "4.0.0", "2.13", "4.0.1")
SPARK_41 = Installed("4.1.1", "4.1.1", "2.13", "4.2.0")


@pytest.mark.parametrize(
    ("spark", "delta", "artifact"),
    [
        ("4.0.0", "4.0.1", "io.delta:delta-spark_2.13:4.0.1"),
        ("4.0.1", "4.1.0", "io.delta:delta-spark_4.0_2.13:4.1.0"),
        ("4.1.1", "4.2.0", "io.delta:delta-spark_4.1_2.13:4.2.0"),
        ("4.2.0", "4.4.0", "io.delta:delta-spark_4.2_2.13:4.4.0"),
    ],
)
def test_from_delta_4_1_on_the_artifact_carries_sparks_minor_version(
    spark: str, delta: str, artifact: str
) -> None:
    assert versions.delta_artifact(spark, delta) == artifact


@pytest.mark.parametrize("minor", sorted(versions.LINES))
def test_each_pair_that_is_named_passes_its_own_check(minor: str) -> None:
    line = versions.LINES[minor]
    installed = Installed(line.pyspark, line.pyspark, "2.13", line.delta)

    versions.check_spark(installed)
    versions.check_delta(installed, line.delta, origin="delta-spark")
    versions.check_running(line.pyspark, line.delta)
    artifact = versions.delta_artifact(line.pyspark, line.delta).split(":")
    versions.check_artifact(installed, artifact[1], artifact[2], origin="packages")


@pytest.mark.parametrize(
    ("installed", "words"),
    [
        (Installed("3.5.4", "3.5.4", "2.12", "3.3.0"), "PySpark 3.5.4 is not supported"),
        (Installed("4.3.0", "4.3.0", "2.13", None), "supported: 4.0, 4.1, 4.2"),
        (Installed("4.0.0", "3.5.1", "2.12", "4.0.1"), "unset SPARK_HOME"),
        (Installed("4.0.0", "4.0.0", "2.12", "4.0.1"), "Scala 2.12"),
    ],
)
def test_spark_that_is_not_supported_is_one_line(installed: Installed, words: str) -> None:
    with pytest.raises(PipelineError, match=words) as caught:
        versions.check_spark(installed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("installed", "delta", "pair"),
    [
        (SPARK_40, "3.3.0", "'pyspark==4.0.0' 'delta-spark==4.0.1'"),
        (SPARK_40, "4.4.0", "'pyspark==4.0.0' 'delta-spark==4.0.1'"),
        (SPARK_41, "4.0.1", "'pyspark==4.1.1' 'delta-spark==4.2.0'"),
    ],
)
def test_delta_of_another_spark_names_the_pair_that_works(
    installed: Installed, delta: str, pair: str
) -> None:
    with pytest.raises(PipelineError) as caught:
        versions.check_delta(installed, delta, origin="delta-spark")
    assert f"This pair works: pip install {pair}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("delta-spark_2.12", "3.3.0", "built for Scala 2.12"),
        ("delta-spark_4.1_2.13", "4.1.0", "is for Spark 4.1"),
        ("spark-sql-kafka-0-10_2.13", "3.5.1", "spark-sql-kafka-0-10_2.13:4.0.0"),
        ("spark-sql-kafka-0-10_2.12", "4.0.0", "built for Scala 2.12"),
    ],
)
def test_artifacts_of_the_users_own_are_checked(name: str, version: str, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        versions.check_artifact(SPARK_40, name, version, origin="packages")


def test_other_artifacts_pass() -> None:
    versions.check_artifact(SPARK_40, "postgresql", "42.7.7", origin="packages")


def test_running_spark_with_another_delta_is_refused() -> None:
    with pytest.raises(PipelineError, match=r"Spark 4\.0\.0 runs with Delta 3\.3\.0"):
        versions.check_running("4.0.0", "3.3.0")


def test_glue_with_an_older_spark_is_refused_in_one_sentence() -> None:
    with pytest.raises(PipelineError, match=r"Spark 3\.5\.6 .*Glue version to 6\.0") as caught:
        versions.check_running("3.5.6")
    assert "\n" not in str(caught.value)
