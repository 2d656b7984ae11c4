"""`--registry` with Apicurio's registry, and confluent-kafka's own serializers beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.system.typed_command import WITHIN_S, typed

from bench import fixture

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "id", "type": "long"}, {"name": "tail", "type": ["null", "string"]}],
}
KEY = {"type": "object", "title": "Key", "properties": {"id": {"type": "integer"}}}


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


def test_a_registry_that_is_away_is_one_line(broker: Any, registry: str) -> None:
    away = run(broker, "consume", "written", "--registry", "http://127.0.0.1:1", code=1)
    assert away.startswith("ottla consume: cannot decode the value of written-0@0 with schema")
    assert len(away.splitlines()) == 2
