"""Constraints of a table whose rows are filled from several records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from ottla.pipelines import PipelineError
from ottla.pipelines.sinks.delta.sink import DeltaSink
from ottla.pipelines.sinks.delta.target import find_target
from ottla.pipelines.target.constraints import Constraint
from ottla.pipelines.target.judged_alone import check_judged_alone
from ottla.pipelines.target.keyed_table import KeyedTable, read_keyed_table

KEYED = KeyedTable(
    ("id",), ("id", "a", "at", "kind", "partition", "offset"), order_by="at", ignore_nulls=True
)
ROWS = (
    StructType().add("id", "long").add("a", "long").add("at", "long").add("kind", "string", False)
)


@pytest.mark.parametrize(
    "condition",
    ["`a` IS NOT NULL", "`a`.`b` IS NOT NULL", "A IS NULL OR at IS NULL OR a < at", "kind <> a"],
)
def test_a_record_may_not_say_what_the_row_of_its_key_must_have(condition: str) -> None:
    wanted = [Constraint(condition, "", is_of_row=True)]
    with pytest.raises(PipelineError, match=r"The table t asks .* may be null in a where the row"):
        check_judged_alone(KEYED, wanted, ROWS, "t")
    check_judged_alone(replace(KEYED, ignore_nulls=False), wanted, ROWS, "t")
    check_judged_alone(None, wanted, ROWS, "t")
    # A limit of a value holds for each record alone.
    check_judged_alone(KEYED, [Constraint(condition, "")], ROWS, "t")


@pytest.mark.parametrize(
    "condition", ["`id` IS NOT NULL", "at > 0", "kind IN ('a1', 'ba')", "length(kind) < 9"]
)
def test_what_each_record_has_is_asked_of_it(condition: str) -> None:
    check_judged_alone(KEYED, [Constraint(condition, "", is_of_row=True)], ROWS, "t")


def test_a_field_that_a_record_may_lack_is_filled_though_its_struct_is_there() -> None:
    street = StructType().add("name", "string", False).add("number", "long")
    place = StructType().add("street", street, False).add("zip", "long", False)
    rows = StructType().add("id", "long").add("place", place, False).add("at", "long")
    keyed = read_keyed_table(rows, ["id"], order_by="at", ignore_nulls=True, streaming=False)

    def check(condition: str) -> None:
        wanted = [Constraint(condition, "", is_of_row=True)]
        check_judged_alone(keyed, wanted, rows, "t")

    for condition in ("`place`.`street`.`number` IS NOT NULL", "place.street.number < place.zip"):
        with pytest.raises(PipelineError, match="may be null in place where the row of its key"):
            check(condition)
    for path in ("`place`", "`place`.`zip`", "`place`.`street`.`name`"):
        check(f"{path} IS NOT NULL")


@pytest.mark.spark
def test_a_table_that_asks_for_what_a_record_may_lack_is_refused(
    spark: Any, tmp_path: Path
) -> None:
    schema = spark.createDataFrame([], "id INT, notes STRING, partition INT, offset BIGINT").schema
    keyed = read_keyed_table(schema, ["id"], ignore_nulls=True)
    where = f"delta.`{tmp_path}/t`"
    spark.sql(
        f"CREATE TABLE {where} (id INT, notes STRING NOT NULL, partition INT, offset BIGINT) "
        "USING delta"
    )

    def sink() -> DeltaSink:
        return DeltaSink(spark, find_target(spark, tmp_path / "t"), schema, keyed=keyed)

    with pytest.raises(PipelineError, match=r"asks `notes` IS NOT NULL of each row"):
        sink().check()
    spark.sql(f"ALTER TABLE {where} ALTER COLUMN notes DROP NOT NULL")
    used = sink()
    assert used.check() == []
    # One that comes while the query runs stops it, too, with these words.
    spark.sql(f"ALTER TABLE {where} ADD CONSTRAINT long CHECK (length(notes) < 9)")
    with pytest.raises(PipelineError, match=r"asks length .*9 of each row"):
        used.constrained(spark.createDataFrame([], schema))
