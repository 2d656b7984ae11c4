"""A table's key is that of the messages only where the plan of the query proves it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.pipelines import topic
from ottla.pipelines.destination import Destination
from ottla.pipelines.run.message_key import destination_of
from ottla.pipelines.source.source import sources_of
from ottla.pipelines.target.keyed_table import read_keyed_table

pytestmark = pytest.mark.spark

PLACE = "partition, offset, timestamp, tombstone"


def said_of(frame: Any, keys: list[str], **how: Any) -> Destination:
    keyed = read_keyed_table(frame.schema, keys, **how)
    sink: Any = SimpleNamespace(destination=Destination("delta", "/t"), keyed=keyed)
    return destination_of(sink, frame, [source for _, source in sources_of(frame)])


@pytest.fixture
def rows(spark: Any) -> Any:
    frame = topic(
        spark,
        "flights",
        bootstrap_servers="localhost:9092",
        schema="dest STRING, at TIMESTAMP",
        key_schema="carrier STRING NOT NULL, flight INT NOT NULL",
        tombstones="mark",
    )
    frame.createOrReplaceTempView("flights_by_key")
    return frame


def test_all_fields_of_the_key_unchanged_are_the_key_of_the_messages(spark: Any, rows: Any) -> None:
    plain = rows.selectExpr("key.*", "value.*", *PLACE.split(", "))
    assert said_of(plain, ["carrier", "flight"], order_by="timestamp") == Destination(
        "delta", "/t", "upsert", "timestamp", "remove", True
    )
    sql = spark.sql(
        "SELECT * FROM (SELECT key.carrier AS company, key.flight, value.dest, value.at, "
        f"{PLACE} FROM flights_by_key WHERE value.dest <> 'HNL')"
    )
    assert said_of(sql, ["company", "flight"]).by_message_key
    names = spark.createDataFrame([("HA", "Hawaiian")], "carrier STRING, name STRING")
    assert said_of(plain.join(names, "carrier", "left"), ["carrier", "flight"]).by_message_key


@pytest.mark.parametrize(
    ("columns", "keys"),
    [
        (("key.carrier", "value.dest"), ["carrier"]),
        (("key.carrier", "key.flight", "value.dest"), ["carrier", "flight", "dest"]),
        (("upper(key.carrier) AS carrier", "key.flight"), ["carrier", "flight"]),
        (("value.dest AS carrier", "key.flight"), ["carrier", "flight"]),
    ],
)
def test_another_key_is_not(rows: Any, columns: tuple[str, ...], keys: list[str]) -> None:
    frame = rows.selectExpr(*columns, *PLACE.split(", "))
    assert not said_of(frame, keys).by_message_key


def test_the_order_is_the_topics_only_where_it_is_not_computed(spark: Any, rows: Any) -> None:
    frame = rows.selectExpr("key.*", "value.at", "value.at AS when", *PLACE.split(", "))
    assert said_of(frame, ["carrier", "flight"]).order == "offset"
    assert said_of(frame, ["carrier", "flight"], order_by="at").order == "column"
    assert said_of(frame, ["carrier", "flight"], history=True).order == "timestamp"
    assert said_of(frame, ["carrier", "flight"], history=True).rows == "history"
    query = "SELECT key.*, value.at AS timestamp, partition, offset FROM flights_by_key"
    of_value = spark.sql(f"WITH r AS ({query}) SELECT * FROM r")
    assert said_of(of_value, ["carrier", "flight"], order_by="timestamp").order == "column"


def test_a_key_of_one_type_is_the_whole_key(spark: Any) -> None:
    frame = topic(
        spark, "one", bootstrap_servers="localhost:9092", schema="n INT", key_schema="string"
    ).selectExpr("key AS id", "value.n", "partition", "offset")
    assert said_of(frame, ["id"]) == Destination("delta", "/t", "upsert", by_message_key=True)
    assert not said_of(frame, ["n"]).by_message_key
