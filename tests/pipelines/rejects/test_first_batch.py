"""A first batch that is mostly rejected stops the query before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, LongType, StructType

from ottla.pipelines import to_delta, topic
from ottla.pipelines.errors import MostlyRejectedError
from ottla.pipelines.kafka.records import Record
from ottla.pipelines.kafka.settings import read_settings
from ottla.pipelines.rejects.first_batch import check_reasons, half_is_sure_to_fit
from ottla.pipelines.running import QUERIES
from ottla.pipelines.source.source import Source

NO_OBJECT = "value is not a JSON object of the schema"


def test_half_of_the_records_may_have_a_reason() -> None:
    check_reasons("t", [])
    check_reasons("t", [None, NO_OBJECT])
    with pytest.raises(MostlyRejectedError, match="2 of 3 records of t in the first batch"):
        check_reasons("t", [None, NO_OBJECT, NO_OBJECT])


def test_the_most_frequent_reason_is_named_whatever_value_it_shows() -> None:
    reasons = [NO_OBJECT, "value.id is not a int: one", "value.id is not a int: two"]
    with pytest.raises(MostlyRejectedError, match=r"reason: value\.id is not a int: one\."):
        check_reasons("t", [*reasons])


GOOD, BAD, UNSURE = b'{"id": 1}', b"plain", b"{'id': 1}"


@pytest.mark.parametrize(
    ("values", "is_sure"),
    [
        ([], True),
        ([GOOD, None, BAD, BAD], True),  # a tombstone is no value that could be wrong
        ([GOOD, BAD, BAD], False),
        ([GOOD, UNSURE], True),
        ([GOOD, UNSURE, UNSURE], False),
        ([b'{"id": 1, "ID": 1}', b'{"id": "a"}'], False),
    ],
)
def test_spark_is_asked_where_half_of_the_records_are_not_sure_to_fit(
    values: list[bytes | None], is_sure: bool
) -> None:
    schemas: dict[str, Any] = {
        "key": BinaryType(),
        "value": StructType().add("id", LongType()),
    }
    kafka = read_settings("127.0.0.1:9", {})
    source = Source("t", kafka, schemas, unknown_fields="reject")
    records = [Record("t", 0, number, 0, b"k", one, None) for number, one in enumerate(values)]
    assert half_is_sure_to_fit(records, source) is is_sure
    debezium = replace(source, source_format="debezium")
    assert not half_is_sure_to_fit(records, debezium)


@pytest.mark.spark
def test_the_query_stops_until_the_schema_is_mended_or_it_is_told_to_continue(
    spark: Any,
    bootstrap: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
) -> None:
    name = new_topic()
    produce(name, [*[(f"k{n}", f"plain {n}") for n in range(7)], ("good", '{"id": 1}')])

    def run(schema: str, **options: Any) -> Any:
        rows = topic(spark, name, bootstrap_servers=bootstrap, schema=schema)
        given: dict[str, Any] = {
            "checkpoint": tmp_path / "cp",
            "trigger": {"availableNow": True},
        } | options
        query = to_delta(rows.select("value", "partition", "offset"), tmp_path / "t", **given)
        query.awaitTermination()
        return query

    def count(suffix: str = "") -> int:
        return int(spark.read.format("delta").load(f"{tmp_path / 't'}{suffix}").count())

    for delivery in ("at-most-once", "exactly-once"):
        with pytest.raises(MostlyRejectedError) as stopped:
            run("id BIGINT", delivery=delivery)
        assert f"7 of 8 records of {name}" in str(stopped.value)
        assert NO_OBJECT in str(stopped.value)
        assert count() == 0
    query = run("id BIGINT", on_rejects="continue")
    assert (count(), count("_rejected")) == (1, 7)
    assert QUERIES[query.id].rejected_reason == NO_OBJECT
