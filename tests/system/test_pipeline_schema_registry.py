"""Apicurio's registry and confluent-kafka's own serializers: what they write, a pipeline reads."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass
from tests.pipelines.environment import serve
from tests.pipelines.jars import fetch_jars_once, formats
from tests.system.pipeline_commands import WAIT_S, Running, ottla

from components import fixture
from ottla.registry.framing import head
from ottla.registry.protobuf_messages import Messages
from ottla.registry.registered import PROTOBUF, Registered

pytestmark = [
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not formats(), reason="no spark-avro for this Spark"),
]

PLANE = {
    "type": "record",
    "name": "Plane",
    "namespace": "air",
    "fields": [{"name": "tail", "type": "string"}],
}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "plane", "type": PLANE},
    {"name": "delay", "type": MONEY},
]
OLD = {"type": "record", "name": "Flight", "namespace": "air", "fields": FIELDS}
NEW = OLD | {"fields": [*FIELDS, {"name": "dest", "type": ["null", "string"], "default": None}]}
KEY = {
    "type": "object",
    "title": "Key",
    "properties": {"id": {"type": "integer"}},
    "required": ["id"],
}
OLD_PROTO = """syntax = "proto3";
package air;
message Plane { string tail = 1; }
message Flight { int32 id = 1; Plane plane = 2; }
"""
# A message more, and Flight has another index than before.
NEW_PROTO = """syntax = "proto3";
package air;
message Airport { string code = 1; }
message Plane { string tail = 1; }
message Flight { int32 id = 1; Plane plane = 2; optional string dest = 3; }
"""
FILE = """
[source]
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
key_schema = "registry"
registry = "{url}"
[transform]
sql = "SELECT key.id AS k, value.*, offset FROM {view}"
[sink]
target = "./lake/flights"
schema_changes = "add"
[delivery]
checkpoint = "./cp/flights"
group = "{topic}-delta"
trigger = "1 second"
[spark]
master = "local[2]"
[spark.conf]
spark.sql.shuffle.partitions = 2
spark.driver.extraJavaOptions = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""


registry = fixture.registry


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("broker") / "data") as address:
        yield address


class Flights:
    """A producer with confluent-kafka's serializers."""

    def __init__(self, bootstrap: str, url: str) -> None:
        self.topic = f"flights-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(self.topic, 1, 1)])[self.topic].result(timeout=30)
        self.producer = Producer({"bootstrap.servers": bootstrap})
        self.client = SchemaRegistryClient({"url": url})
        self.key = JSONSerializer(json.dumps(KEY), self.client)

    def produce(self, schema: Any, values: list[Any]) -> None:
        serialize = AvroSerializer(self.client, json.dumps(schema))
        for value in values:
            data = serialize(value, SerializationContext(self.topic, MessageField.VALUE))
            key = self.key({"id": value["id"]}, SerializationContext(self.topic, MessageField.KEY))
            self.producer.produce(self.topic, data, key)
        assert self.producer.flush(30) == 0

    def produce_protobuf(self, proto: str, values: list[Any]) -> None:
        """Write by the serializer, which registers the file's descriptor."""
        messages = Messages(Registered(1, PROTOBUF, proto))
        flight = GetMessageClass(messages.by_name["air.Flight"])
        serialize = ProtobufSerializer(flight, self.client)
        for value in values:
            context = SerializationContext(self.topic, MessageField.VALUE)
            self.producer.produce(self.topic, serialize(flight(**value), context))
        assert self.producer.flush(30) == 0


def flight(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "plane": {"tail": f"N{number}"}, "delay": Decimal("1.25"), **more}


def test_a_pipeline_follows_a_schema_that_evolves(
    registry: str, bootstrap: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    flights = Flights(bootstrap, registry)
    flights.produce(OLD, [flight(1), flight(2)])
    flights.producer.produce(flights.topic, b"no frame", None)
    assert flights.producer.flush(30) == 0
    file = tmp_path / "flights.toml"
    view = flights.topic.replace("-", "_")
    file.write_text(FILE.format(bootstrap=bootstrap, topic=flights.topic, url=registry, view=view))
    run = Running(file, tmp_path / "spark.log")
    try:
        run.wait_for_rows(3)
        flights.produce(NEW, [flight(3, dest="HNL")])
        flights.produce(OLD, [flight(4)])
        run.wait_for_rows(5)
        assert ottla("stop", str(file), timeout=WAIT_S).returncode == 0
        assert run.wait() == 0
    finally:
        run.kill()
    errors = run.errors.read_text()
    assert "gets the column dest (string)" in errors
    assert "schema that the plan does not know. Trying again" in errors

    shown = ottla("rejects", str(file), "--json", timeout=WAIT_S)
    assert shown.returncode == 0, shown.stderr
    (found,) = json.loads(shown.stdout)
    assert (found["rows"], len(found["reasons"])) == (1, 1)
    assert found["reasons"][0]["reason"].startswith("value has no schema id")
    assert (found["newest"][0]["offset"], found["newest"][0]["value"]) == (2, "no frame")
    table = ottla("rejects", str(file), timeout=WAIT_S)
    assert f"{flights.topic}-0@2" in table.stdout
    maintained = ottla("maintain", str(file), "--json", timeout=WAIT_S)
    assert maintained.returncode == 0, maintained.stderr
    tables = {Path(one["table"]).name: one for one in json.loads(maintained.stdout)}
    assert set(tables) == {"flights", "flights_rejected"}
    assert [one["deleted"] for one in tables.values()] == [0, 0]
    assert tables["flights"]["files_after"] == 1
    found = rows(tmp_path / "lake/flights", "k", "dest", "cast(delay AS string) AS delay")
    assert found == [
        {"k": 1, "id": 1, "tail": "N1", "dest": None, "delay": "1.25"},
        {"k": 2, "id": 2, "tail": "N2", "dest": None, "delay": "1.25"},
        {"k": 3, "id": 3, "tail": "N3", "dest": "HNL", "delay": "1.25"},
        {"k": 4, "id": 4, "tail": "N4", "dest": None, "delay": "1.25"},
    ]


def test_protobuf_of_a_serializer_becomes_columns(
    registry: str, bootstrap: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fetch_jars_once(tmp_path_factory)
    flights = Flights(bootstrap, registry)
    flights.produce_protobuf(OLD_PROTO, [{"id": 1, "plane": {"tail": "N1"}}])
    known = flights.client.get_latest_version(f"{flights.topic}-value").schema_id
    flights.producer.produce(flights.topic, head(known) + b"\x02\x02\xff", None)
    assert flights.producer.flush(30) == 0
    file = tmp_path / "flights.toml"
    view = flights.topic.replace("-", "_")
    text = FILE.replace('key_schema = "registry"', 'schema = "registry#air.Flight"')
    text = text.replace("key.id AS k", "partition AS k")
    file.write_text(text.format(bootstrap=bootstrap, topic=flights.topic, url=registry, view=view))
    run = Running(file, tmp_path / "spark.log")
    try:
        run.wait_for_rows(2)
        flights.produce_protobuf(NEW_PROTO, [{"id": 2, "plane": {"tail": "N2"}, "dest": "HNL"}])
        flights.produce_protobuf(OLD_PROTO, [{"id": 3, "plane": {"tail": "N3"}}])
        run.wait_for_rows(4)
        assert ottla("stop", str(file), timeout=WAIT_S).returncode == 0
        assert run.wait() == 0
    finally:
        run.kill()
    errors = run.errors.read_text()
    assert "gets the column dest (string)" in errors
    shown = ottla("rejects", str(file), "--json", timeout=WAIT_S)
    assert shown.returncode == 0, shown.stderr
    (found,) = json.loads(shown.stdout)
    assert found["rows"] == 1
    reason = "value is not Protobuf data of air.Flight: it is damaged"
    assert [one["reason"] for one in found["reasons"]] == [reason]
    assert rows(tmp_path / "lake/flights", "dest") == [
        {"id": 1, "tail": "N1", "dest": None},
        {"id": 2, "tail": "N2", "dest": "HNL"},
        {"id": 3, "tail": "N3", "dest": None},
    ]


def rows(table: Path, *more: str) -> list[dict[str, Any]]:
    """The table as a Spark of its own reads it."""
    from ottla.pipelines import session

    spark = session("rows", master="local[1]", conf={"spark.ui.enabled": False})
    frame = spark.read.format("delta").load(str(table)).orderBy("id")
    columns = ("id", "plane.tail", *more)
    try:
        return [row.asDict() for row in frame.selectExpr(*columns).collect()]
    finally:
        spark.stop()
