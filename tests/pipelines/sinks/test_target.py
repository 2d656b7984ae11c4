"""Where a stream goes."""

from pathlib import Path

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.target import find_target

pytestmark = pytest.mark.spark


def test_a_path_and_its_names(spark, tmp_path: Path) -> None:
    schema = spark.range(1).schema
    target = find_target(spark, f"{tmp_path}/lake.v1/flights/", schema)

    assert target.short_name == "flights"
    assert target.shown == f"{tmp_path}/lake.v1/flights"
    assert target.rejected_name() == f"{tmp_path}/lake.v1/flights_rejected"
    assert not target.is_table
    assert find_target(spark, tmp_path / "flights", schema).shown == f"{tmp_path}/flights"


def test_a_table_is_made_and_found_again(spark) -> None:
    schema = spark.range(1).schema
    spark.sql("CREATE DATABASE IF NOT EXISTS lake")

    made = find_target(spark, "lake.numbers", schema)
    made.append(spark.range(3), "writer", 0)
    made.append(spark.range(3), "writer", 0)
    made.append(spark.range(3, 5), "writer", 1)

    assert made.is_table
    assert (made.shown, made.short_name) == ("lake.numbers", "numbers")
    assert spark.table("lake.numbers").count() == 5
    again = find_target(spark, "lake.numbers", schema)
    assert again.location == made.location


def test_a_table_that_the_catalog_forgot_is_taken_up_again(spark) -> None:
    schema = spark.range(1).schema
    made = find_target(spark, "forgotten", schema)
    made.append(spark.range(3), "writer", 0)
    # What a restart does to Spark's catalog in memory: the files stay.
    database, table = "default", "forgotten"
    catalog = spark._jsparkSession.sessionState().catalog().externalCatalog()
    files = Path(made.location.removeprefix("file:"))
    kept = files.rename(files.with_name("kept"))
    catalog.dropTable(database, table, True, False)
    kept.rename(files)

    again = find_target(spark, "forgotten", schema)

    assert again.location == made.location
    assert spark.table("forgotten").count() == 3


def test_what_is_no_target_is_refused(spark, tmp_path: Path) -> None:
    schema = spark.range(1).schema
    (tmp_path / "notes.txt").touch()
    spark.sql("CREATE TABLE texts (a STRING) USING parquet")

    for target, words in (
        ("no spaces", "write a path with a slash"),
        ("", "write a path with a slash"),
        (None, "write a path with a slash"),
        (str(tmp_path), "holds files that are no Delta table"),
        ("texts", "The table texts is parquet, not Delta"),
        ("nowhere.flights", "The table nowhere.flights cannot be made"),
    ):
        with pytest.raises(PipelineError, match=words):
            find_target(spark, target, schema)
