"""Which jars Spark is given: what the user gives stays."""

from pathlib import Path

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark import jars
from ottla.pipelines.spark.versions import Installed

INSTALLED = Installed("4.0.0", "4.0.0", "2.13", "4.0.1")
DELTA = "io.delta:delta-spark_2.13:4.0.1"
KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
POSTGRES = "org.postgresql:postgresql:42.7.7"


def test_delta_and_kafka_are_added_to_what_is_given() -> None:
    assert jars.wanted_packages(INSTALLED, [POSTGRES, POSTGRES], []) == [POSTGRES, DELTA, KAFKA]


def test_what_is_given_is_not_added_again() -> None:
    own = "io.delta:delta-spark_2.13:4.0.0"
    assert jars.wanted_packages(INSTALLED, [own], []) == [own, KAFKA]


def test_delta_of_pip_decides_and_without_it_the_table_does() -> None:
    without = Installed("4.1.1", "4.1.1", "2.13", None)
    assert "io.delta:delta-spark_4.1_2.13:4.2.0" in jars.wanted_packages(without, [], [])


def test_delta_of_pip_that_does_not_fit_is_refused() -> None:
    with pytest.raises(PipelineError, match="do not belong together"):
        jars.wanted_packages(Installed("4.0.0", "4.0.0", "2.13", "3.3.0"), [], [])


def test_a_coordinate_that_is_none_is_refused() -> None:
    with pytest.raises(PipelineError, match="group:artifact:version"):
        jars.wanted_packages(INSTALLED, ["postgresql"], [])


def make_jars(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / f"{name}.jar").touch()


ALL = (
    "delta-spark_2.13-4.0.1",
    "delta-storage-4.0.1",
    "spark-sql-kafka-0-10_2.13-4.0.0",
    "spark-token-provider-kafka-0-10_2.13-4.0.0",
    "kafka-clients-3.9.0",
    "commons-pool2-2.12.0",
)


def test_a_folder_of_jars_needs_no_packages(tmp_path: Path) -> None:
    make_jars(tmp_path, *ALL)

    listed = jars.list_jars(tmp_path)

    assert sorted(Path(jar).stem for jar in listed) == sorted(ALL)
    assert jars.wanted_packages(INSTALLED, [], listed) == []


def test_a_folder_that_lacks_one_is_refused_by_name(tmp_path: Path) -> None:
    make_jars(tmp_path, *ALL[:-2])

    with pytest.raises(PipelineError, match="kafka-clients, commons-pool2 missing"):
        jars.wanted_packages(INSTALLED, [], jars.list_jars([tmp_path]))


def test_jars_of_another_spark_are_refused(tmp_path: Path) -> None:
    make_jars(tmp_path, "delta-spark_2.12-3.3.0", *ALL[1:])

    with pytest.raises(PipelineError, match=r"Scala 2\.12"):
        jars.wanted_packages(INSTALLED, [], jars.list_jars(tmp_path))


def test_other_jars_leave_delta_and_kafka_to_ivy(tmp_path: Path) -> None:
    make_jars(tmp_path, "mine-1.0")
    assert jars.wanted_packages(INSTALLED, [], jars.list_jars(tmp_path)) == [DELTA, KAFKA]


def test_a_jar_that_is_not_there_is_refused() -> None:
    with pytest.raises(PipelineError, match=r"there is no file \./gone\.jar"):
        jars.list_jars("./gone.jar")


def test_settings_of_sparks_launcher_are_found_and_taken_out_of_its_arguments(
    tmp_path: Path,
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\nspark.jars.packages  a:b:1\nspark.sql.extensions=x.Y\nspark.master yarn\n"
    )
    environ = {
        "SPARK_CONF_DIR": str(tmp_path),
        "PYSPARK_SUBMIT_ARGS": f"--packages {POSTGRES} --conf spark.ui.port=1 --jars /a.jar "
        "--driver-memory 2g pyspark-shell",
    }

    given = jars.read_given(environ, tmp_path)

    assert given.settings == {
        "spark.jars.packages": POSTGRES,
        "spark.sql.extensions": "x.Y",
        "spark.master": "yarn",
        "spark.ui.port": "1",
        "spark.jars": "/a.jar",
    }
    assert given.submit_arguments == "--driver-memory 2g pyspark-shell"


def test_jars_that_spark_has_itself_are_left_out() -> None:
    given = [
        "/ivy/io.delta_delta-spark_2.13-4.0.1.jar",
        "/ivy/org.slf4j_slf4j-api-2.0.13.jar",
        "/ivy/org.apache.kafka_kafka-clients-3.9.0.jar",
        "/opt/slf4j-api-2.0.16.jar",
        "/opt/mine.jar",
    ]

    kept = jars.without_own(given, {"slf4j-api", "clients"})

    assert kept == [given[0], given[2], given[4]]


def test_a_format_is_a_package_in_sparks_version() -> None:
    avro = "org.apache.spark:spark-avro_2.13:4.0.0"

    assert jars.wanted_packages(INSTALLED, [], [], ["avro", "avro"]) == [DELTA, KAFKA, avro]
    assert jars.wanted_packages(INSTALLED, [avro], [], ["avro"]) == [avro, DELTA, KAFKA]
    with pytest.raises(PipelineError, match=r"is for Spark 4\.1.*use .*spark-avro_2\.13:4\.0\.0"):
        jars.wanted_packages(INSTALLED, ["org.apache.spark:spark-avro_2.13:4.1.1"], [])
    protobuf = "org.apache.spark:spark-protobuf_2.13:4.0.0"
    assert jars.wanted_packages(INSTALLED, [], [], ["protobuf"]) == [DELTA, KAFKA, protobuf]
    with pytest.raises(PipelineError, match=r"is for Spark 4\.1.*use .*spark-protobuf_2\.13:4\.0"):
        jars.wanted_packages(INSTALLED, ["org.apache.spark:spark-protobuf_2.13:4.1.1"], [])
