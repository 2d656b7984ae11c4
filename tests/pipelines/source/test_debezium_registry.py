"""Events of Debezium as Avro and JSON by a schema registry, which is Apicurio's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.pipelines.jars import formats

from components import fixture
from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.registry.framed import Framed
from ottla.pipelines.source.debezium_registry import framed_envelope
from ottla.registry.registered import AVRO, PROTOBUF

registry = fixture.registry

pytestmark = pytest.mark.spark

OPTIONAL = ["null", "string"]


def avro(*more: str) -> dict[str, Any]:
    """The schema of events as Debezium registers it, of a table with more columns."""
    columns: list[dict[str, Any]] = [{"name": "id", "type": "int"}]
    columns += [{"name": name, "type": OPTIONAL, "default": None} for name in ("name", *more)]
    row = {"type": "record", "name": "Value", "namespace": "shop.people", "fields": columns}
    source = [{"name": "db", "type": "string"}, {"name": "lsn", "type": ["null", "long"]}]
    block = [{"name": "id", "type": "string"}, {"name": "total_order", "type": "long"}]
    fields: list[dict[str, Any]] = [
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": source}},
        {"name": "transaction", "default": None,
         "type": ["null", {"type": "record", "name": "block", "fields": block}]},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ]  # fmt: skip
    return {"type": "record", "name": "Envelope", "namespace": "shop.people", "fields": fields}


def json_schema(*more: str) -> dict[str, Any]:
    """The same as JSON Schema."""
    null = {"type": "null"}
    text = {"oneOf": [null, {"type": "string"}]}
    columns = {"id": {"type": "integer"}} | dict.fromkeys(("name", *more), text)
    row = {"type": "object", "properties": columns, "required": ["id"]}
    number = {"type": "integer"}
    source = {"type": "object", "properties": {"db": {"type": "string"}, "lsn": number}}
    block = {"type": "object", "properties": {"id": {"type": "string"}, "total_order": number}}
    fields = {
        "before": {"oneOf": [null, row]},
        "after": {"oneOf": [null, row]},
        "source": source,
        "transaction": {"oneOf": [null, block]},
        "op": {"type": "string"},
        "ts_ms": {"oneOf": [null, number]},
    }
    return {"type": "object", "title": "Envelope", "properties": fields, "required": ["op"]}


def event(op: str, lsn: int, before: Any = None, after: Any = None) -> dict[str, Any]:
    block = {"id": f"{lsn}:1", "total_order": 1}
    found = {"op": op, "before": before, "after": after, "ts_ms": 1_559_033_904_863}
    return found | {"source": {"db": "shop", "lsn": lsn}, "transaction": block}


def person(id_: int, name: str | None = "Anne", **more: str) -> dict[str, Any]:
    return {"id": id_, "name": name} | more


@pytest.mark.full
@pytest.mark.parametrize(
    "is_avro",
    [
        pytest.param(
            True,
            marks=pytest.mark.skipif(not formats(), reason="no spark-avro for this Spark"),
        ),
        False,
    ],
    ids=["Avro", "JSON"],
)
def test_a_table_follows_the_database_by_a_registry(
    spark: Any,
    bootstrap: str,
    registry: str,
    new_topic: Callable[..., str],
    produce: Callable[..., None],
    tmp_path: Path,
    is_avro: bool,
) -> None:
    name = new_topic(1)
    client = SchemaRegistryClient({"url": registry})
    context = SerializationContext(name, MessageField.VALUE)

    def send(schema: dict[str, Any], *events: dict[str, Any] | None) -> None:
        kind = AvroSerializer if is_avro else JSONSerializer
        make: Any = (
            kind(client, json.dumps(schema)) if is_avro else kind(json.dumps(schema), client)
        )
        produce(name, [(b"k", one if one is None else make(one, context)) for one in events])

    def run() -> None:
        rows = topic(
            spark, name, bootstrap_servers=bootstrap, registry=registry, source_format="debezium",
            truncate="apply",
        )  # fmt: skip
        lsn = "CAST(get_json_object(source, '$.lsn') AS BIGINT) AS lsn"
        block = "get_json_object(transaction, '$.id') AS block"
        columns = ("value.*", "partition", "offset", "tombstone", "truncation", lsn, block)
        to_delta(
            rows.selectExpr(*columns), tmp_path / "t", checkpoint=tmp_path / "c", keys="id",
            trigger={"availableNow": True}, schema_changes="add",
        ).awaitTermination()  # fmt: skip

    def found(*columns: str) -> list[tuple[Any, ...]]:
        frame = spark.read.format("delta").load(str(tmp_path / "t"))
        return sorted(map(tuple, frame.select(*columns).collect()))

    old = avro() if is_avro else json_schema()
    send(old, *(event("r", n, after=person(n)) for n in (1, 2, 3)))
    run()
    assert found("id", "name", "lsn", "block") == [(n, "Anne", n, f"{n}:1") for n in (1, 2, 3)]
    nobody = event("c", 9)
    send(old, event("u", 4, person(1), person(1, "Eve")), event("d", 5, person(2, None)), None)
    send(old, nobody, event("d", 10))
    run()
    assert found("id", "name") == [(1, "Eve"), (3, "Anne")]
    rejected = spark.read.format("delta").load(str(tmp_path / "t_rejected")).orderBy("offset")
    assert [row["reason"] for row in rejected.collect()] == [
        "value.after is null in an event with op c",
        "value.before is null in an event with op d, so nothing says which row was deleted",
    ]
    # The database's table gets a column, and is truncated.
    new = avro("city") if is_avro else json_schema("city")
    send(new, event("t", 11), event("c", 12, after=person(4, city="Ulm")))
    run()
    assert found("id", "name", "city") == [(4, "Anne", "Ulm")]


def framed(kind: str, fields: list[dict[str, Any]]) -> Framed:
    return Framed(kind, json.dumps({"type": "struct", "fields": fields}), ())


def field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


ROW = {"type": "struct", "fields": [field("id", "integer") | {"nullable": False}]}
OTHER = {"type": "struct", "fields": [field("id", "string")]}


def test_the_row_before_may_lack_fields() -> None:
    event_ = framed(AVRO, [field("before", ROW), field("after", ROW), field("op", "string")])
    before, after, _ = json.loads(framed_envelope(event_).type)["fields"]
    assert before["type"]["fields"][0]["nullable"]
    assert after["type"] == ROW


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (framed(PROTOBUF, []), "is for events as Avro or JSON"),
        (Framed(AVRO, '"string"', ()), "it has none"),
        (framed(AVRO, [field("id", "integer")]), "no before and after .* it has id"),
        (framed(AVRO, [field("before", ROW), field("after", ROW)]), "has no text op"),
        (
            framed(AVRO, [field("before", OTHER), field("after", ROW), field("op", "string")]),
            "are rows of different types",
        ),
    ],
)
def test_what_is_no_event_in_the_registry_is_refused(value: Framed, said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        framed_envelope(value)
