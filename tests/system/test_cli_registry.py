"""`--registry` of commands and of the console, with Apicurio's registry."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass
from tests.console.served_console import console_of, serving
from tests.system.typed_command import WITHIN_S, typed

from components import fixture
from ottla.console.schemas import Schemas
from ottla.registry.client import registry_at
from ottla.registry.protobuf_messages import Messages
from ottla.registry.registered import PROTOBUF, Registered

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "id", "type": "long"}, {"name": "tail", "type": ["null", "string"]}],
}
KEY = {"type": "object", "title": "Key", "properties": {"id": {"type": "integer"}}}
PLANE_PROTO = 'syntax = "proto3"; package air; message Plane { string tail = 1; }'
FLIGHT_PROTO = """syntax = "proto3";
package air;
import "air/plane.proto";
message Flight {
  int32 id = 1;
  Plane plane = 2;
  message Leg { int32 n = 1; }
  repeated Leg legs = 3;
}
"""


registry = fixture.registry


def run(broker: Any, *words: object, data: bytes = b"", code: int = 0) -> str:
    return typed(broker.bootstrap, *words, data=data, code=code)


def test_what_a_serializer_wrote_is_shown_as_json(broker: Any, registry: str) -> None:
    client = SchemaRegistryClient({"url": registry})
    serialize = AvroSerializer(client, json.dumps(FLIGHT))
    run(broker, "topic", "create", "written", "-p", "1")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, tail in ((1, "N101"), (2, None)):
        context = SerializationContext("written", MessageField.VALUE)
        value = serialize({"id": number, "tail": tail}, context)
        producer.produce("written", value, b"plain")
    assert producer.flush(WITHIN_S) == 0
    shown = run(broker, "consume", "written", "--keys", "--registry", registry)
    assert shown == 'plain\t{"id": 1, "tail": "N101"}\nplain\t{"id": 2, "tail": null}\n'
    found = run(broker, "consume", "written", "--grep", "N101", "--registry", registry, "--json")
    assert json.loads(found)["value"] == '{"id": 1, "tail": "N101"}'


def test_lines_are_written_with_the_newest_schemas(broker: Any, registry: str) -> None:
    client = SchemaRegistryClient({"url": registry})
    run(broker, "topic", "create", "typed", "-p", "1")
    missing = run(broker, "produce", "typed", "--registry", registry, data=b"{}\n", code=1)
    assert "the registry has no subject typed-value" in missing
    client.register_schema("typed-value", Schema(json.dumps(FLIGHT), "AVRO"))
    client.register_schema("typed-key", Schema(json.dumps(KEY), "JSON"))
    line = b'{"key": {"id": 7}, "value": {"id": 7, "tail": "N7"}}\n'
    run(broker, "produce", "typed", "--json", "--registry", registry, data=line)
    wrong = run(broker, "produce", "typed", "--registry", registry, data=b'{"id": "x"}\n', code=1)
    assert "line 1 has a value that its schema refuses" in wrong
    assert run(broker, "consume", "typed", "--format", "%S").strip() != "0"
    shown = run(broker, "consume", "typed", "--keys", "--registry", registry)
    assert shown == '{"id": 7}\t{"id": 7, "tail": "N7"}\n'


def test_protobuf_that_a_serializer_wrote_and_that_we_write(broker: Any, registry: str) -> None:
    flight = flight_class()
    client = SchemaRegistryClient({"url": registry})
    # The serializer registers both files, as serialized descriptors.
    serialize = ProtobufSerializer(flight, client)
    run(broker, "topic", "create", "proto", "-p", "1")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    message = flight(id=1, plane={"tail": "N101"}, legs=[{"n": 2}])
    context = SerializationContext("proto", MessageField.VALUE)
    producer.produce("proto", serialize(message, context))
    assert producer.flush(WITHIN_S) == 0
    written = '{"id": 2, "plane": {"tail": "N102"}, "legs": []}'
    run(broker, "produce", "proto", "--registry", registry, data=f"{written}\n".encode())
    shown = run(broker, "consume", "proto", "--registry", registry)
    assert shown == f'{{"id": 1, "plane": {{"tail": "N101"}}, "legs": [{{"n": 2}}]}}\n{written}\n'

    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "proto"})
    try:
        consumer.assign([TopicPartition("proto", 0, 1)])
        record = consumer.poll(WITHIN_S)
    finally:
        consumer.close()
    assert record is not None
    read = ProtobufDeserializer(flight, schema_registry_client=client)(record.value(), context)
    assert read == flight(id=2, plane={"tail": "N102"})


def test_protobuf_as_text_with_a_reference(broker: Any, registry: str) -> None:
    client = SchemaRegistryClient({"url": registry})
    client.register_schema("text-plane", Schema(PLANE_PROTO, "PROTOBUF"))
    reference = SchemaReference("air/plane.proto", "text-plane", 1)
    client.register_schema("text-value", Schema(FLIGHT_PROTO, "PROTOBUF", [reference]))
    key = "message Plane { int32 id = 1; } message Pilot { string name = 1; }"
    client.register_schema("text-key", Schema(f'syntax = "proto3"; {key}', "PROTOBUF"))
    run(broker, "topic", "create", "text", "-p", "1")
    line = b'{"key": {"@type": "Pilot", "name": "A"}, "value": {"plane": {"tail": "N7"}}}\n'
    run(broker, "produce", "text", "--json", "--registry", registry, data=line)
    shown = run(broker, "consume", "text", "--keys", "--registry", registry)
    key, value = shown.rstrip("\n").split("\t")
    assert json.loads(key) == {"@type": "Pilot", "name": "A"}
    assert json.loads(value) == {"id": 0, "plane": {"tail": "N7"}, "legs": []}
    wrong = run(broker, "produce", "text", "--registry", registry, data=b'{"no": 1}\n', code=1)
    assert 'line 1 has a value that its schema refuses: Message type "air.Flight" has no' in wrong


def flight_class() -> Any:
    """The message Flight as a program has it that was generated from the .proto files."""
    plane = Registered(1, PROTOBUF, PLANE_PROTO)
    flight = Registered(2, PROTOBUF, FLIGHT_PROTO, references=(("air/plane.proto", plane),))
    return GetMessageClass(Messages(flight).by_name["air.Flight"])


def test_a_registry_that_is_away_is_one_line(broker: Any, registry: str) -> None:
    away = run(broker, "consume", "written", "--registry", "http://127.0.0.1:1", code=1)
    assert away.startswith("ottla consume: cannot decode the value of written-0@0 with schema")
    assert len(away.splitlines()) == 2


def test_the_console_shows_the_registry_and_decodes_by_it(broker: Any, registry: str) -> None:
    client = SchemaRegistryClient({"url": registry})
    later = {**FLIGHT, "fields": [*FLIGHT["fields"], {"name": "n", "type": "int", "default": 0}]}
    run(broker, "topic", "create", "shown", "-p", "1")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for schema in (FLIGHT, later):
        client.register_schema("shown-value", Schema(json.dumps(schema), "AVRO"))
        serialize = AvroSerializer(client, json.dumps(schema))
        context = SerializationContext("shown", MessageField.VALUE)
        producer.produce("shown", serialize({"id": 1, "tail": "N1", "n": 5}, context))
    assert producer.flush(WITHIN_S) == 0
    schemas = Schemas(registry_at(registry), registry)
    with serving(console_of(broker.bootstrap, schemas=schemas)) as visitor:
        assert "shown-value" in visitor.get("/schemas").words
        page = visitor.get("/schema?subject=shown-value").words
        assert "From version 1 to 2" in page
        assert '+ "name": "n"' in page
        records = visitor.get("/topics/shown/messages?json=n=5").words
        assert '{"id": 1, "tail": "N1", "n": 5}' in records
        assert "1 found" in records
