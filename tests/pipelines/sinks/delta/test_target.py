"""Where a stream goes."""

from pathlib import Path
from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.sinks.delta.target import Target, find_target

pytestmark = pytest.mark.spark


def write(spark: Any, target: Target, first: int, end: int) -> None:
    frame = spark.range(first, end).selectExpr("id", "id % 2 AS part")
    frame.write.format("delta").mode("append").save(target.location)


def test_a_path_and_its_names(spark: Any, tmp_path: Path) -> None:
    target = find_target(spark, f"{tmp_path}/lake.v1/flights/")

    assert target.short_name == "flights"
    assert target.shown == f"{tmp_path}/lake.v1/flights"
    assert target.rejected(spark).shown == f"{tmp_path}/lake.v1/flights_rejected"
    assert not target.is_table
    assert find_target(spark, tmp_path / "flights").shown == f"{tmp_path}/flights"
    assert not (tmp_path / "lake.v1").exists()


def test_a_path_is_made_once_with_its_partitions(spark: Any, tmp_path: Path) -> None:
    schema = spark.range(1).selectExpr("id", "id % 2 AS part").schema
    target = find_target(spark, tmp_path / "numbers")

    made = target.made(spark, schema, ("part",))
    write(spark, made, 0, 3)
    again = made.made(spark, schema, ("part",))

    assert again == made
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{tmp_path}/numbers`").first()
    assert detail["partitionColumns"] == ["part"]
    assert spark.read.format("delta").load(made.location).count() == 3


def test_a_table_is_made_and_found_again(spark: Any) -> None:
    schema = spark.range(1).selectExpr("id", "id % 2 AS part").schema
    spark.sql("CREATE DATABASE IF NOT EXISTS lake")

    found = find_target(spark, "lake.numbers")
    assert not spark.catalog.tableExists("lake.numbers")
    made = found.made(spark, schema, ())
    write(spark, made, 0, 5)

    assert made.is_table
    assert made == found
    assert (made.shown, made.short_name) == ("lake.numbers", "numbers")
    assert spark.table("lake.numbers").count() == 5
    assert find_target(spark, "lake.numbers") == made


def test_a_table_that_the_catalog_forgot_is_found_again(spark: Any) -> None:
    schema = spark.range(1).selectExpr("id", "id % 2 AS part").schema
    made = find_target(spark, "forgotten").made(spark, schema, ())
    write(spark, made, 0, 3)
    # What a restart does to Spark's catalog in memory: the files stay.
    database, table = "default", "forgotten"
    catalog = spark._jsparkSession.sessionState().catalog().externalCatalog()
    files = Path(made.location.removeprefix("file:"))
    kept = files.rename(files.with_name("kept"))
    catalog.dropTable(database, table, True, False)
    kept.rename(files)

    again = find_target(spark, "forgotten").made(spark, schema, ())

    assert again.location == made.location
    assert spark.table("forgotten").count() == 3


def test_what_is_no_target_is_refused(spark: Any) -> None:
    spark.sql("CREATE TABLE texts (a STRING) USING parquet")

    cases: list[tuple[Any, str]] = [
        ("no spaces", "write a path with a slash"),
        ("", "write a path with a slash"),
        (None, "write a path with a slash"),
        ("texts", "The table texts is parquet, not Delta"),
        ("nowhere.flights", "The table nowhere.flights cannot be created"),
    ]
    for target, words in cases:
        with pytest.raises(PipelineError, match=words):
            find_target(spark, target)


def test_a_view_is_no_table(spark: Any) -> None:
    spark.range(1).createOrReplaceTempView("only_a_view")
    try:
        with pytest.raises(PipelineError, match="only_a_view is a temporary view of this session"):
            find_target(spark, "only_a_view")
    finally:
        spark.catalog.dropTempView("only_a_view")
