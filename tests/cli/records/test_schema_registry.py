"""Data with schemas as JSON and back, by a registry that holds them in memory."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    RegisteredSchema,
    Schema,
    SchemaRegistryClient,
    SchemaRegistryError,
)

from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.records.schema_registry import Decoder, Encoder, client_of
from ottla.messaging.jsonlines import LineError
from ottla.registry.client import RegistryClient
from ottla.registry.decoder import as_json

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "tail", "type": ["null", "string"], "default": None},
    ],
}
PROTO = 'syntax = "proto3"; message F { int32 id = 1; optional string tail = 2; }'
KEY = {"type": "object", "title": "Key", "properties": {"id": {"type": "integer"}}}


class InMemory(SchemaRegistryClient):
    """Answers without HTTP."""

    def __init__(self) -> None:
        super().__init__({"url": "http://localhost:1"})
        self.subjects = {
            "t-value": (7, Schema(json.dumps(FLIGHT), "AVRO")),
            "t-key": (8, Schema(json.dumps(KEY), "JSON")),
            "proto-value": (9, Schema(PROTO, "PROTOBUF")),
            "empty-value": (10, Schema('syntax = "proto3";', "PROTOBUF")),
            "xml-value": (11, Schema("<f/>", "XML")),
        }

    def get_schema(self, schema_id: int, *_: Any, **__: Any) -> Schema:
        for number, schema in self.subjects.values():
            if number == schema_id:
                return schema
        raise SchemaRegistryError(404, 40403, "Schema not found")

    def get_latest_version(self, subject_name: str, *_: Any, **__: Any) -> RegisteredSchema:
        if subject_name not in self.subjects:
            raise SchemaRegistryError(404, 40401, "Subject not found")
        number, schema = self.subjects[subject_name]
        return RegisteredSchema(
            subject=subject_name, version=1, schema_id=number, guid=None, schema=schema
        )


def record(key: bytes | None, value: bytes | None) -> Any:
    return SimpleNamespace(
        topic=lambda: "t",
        partition=lambda: 0,
        offset=lambda: 5,
        key=lambda: key,
        value=lambda: value,
        headers=lambda: [("h", b"1")],
    )


def test_what_is_encoded_is_decoded() -> None:
    encoder, decoder = Encoder(RegistryClient(InMemory()), "t"), Decoder(RegistryClient(InMemory()))
    key, value = encoder.encoded(b'{"id": 3}', b'{"id": 3, "tail": "N\xc3\xa91"}')
    assert value is not None
    assert value[:5] == b"\0\0\0\0\x07"
    found = decoder.decoded(record(key, value))
    assert found.value() == '{"id": 3, "tail": "Né1"}'.encode()
    assert found.key() == b'{"id": 3}'
    assert (found.offset(), found.headers()) == (5, [("h", b"1")])


def test_protobuf_is_its_own_json() -> None:
    encoder, decoder = (
        Encoder(RegistryClient(InMemory()), "proto"),
        Decoder(RegistryClient(InMemory())),
    )
    _, value = encoder.encoded(None, b'{"id": 3, "tail": "N\xc3\xa91"}')
    assert value == b"\0\0\0\0\x09\0\x08\x03\x12\x04N\xc3\xa91"
    assert decoder.decoded(record(None, value)).value() == '{"id": 3, "tail": "Né1"}'.encode()
    with pytest.raises(LineError, match=r"its schema refuses: .*no field named \"x\""):
        encoder.encoded(None, b'{"x": 3}')


def test_data_without_a_header_is_left_as_it_is() -> None:
    found = Decoder(RegistryClient(InMemory())).decoded(record(b"plain", None))
    assert (found.key(), found.value()) == (b"plain", None)
    assert Encoder(RegistryClient(InMemory()), "t").encoded(None, None) == (None, None)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\0\0\0\0\x63....", "schema 99: Schema not found"),
        (b"\0\0\0\0\x07\xff", "cannot decode the value of t-0@5 with schema 7"),
        (b"\0\0\0\0\x09\0\xff", "schema 9: it is not Protobuf data of F"),
        (b"\0\0\0\0\x0a\0", "schema 10: schema 10 defines no message."),
        (b"\0\0\0\0\x0b\0", "it is of type XML; AVRO, JSON and PROTOBUF can be"),
    ],
)
def test_what_cannot_be_decoded_is_named(value: bytes, reason: str) -> None:
    with pytest.raises(Failed, match=reason):
        Decoder(RegistryClient(InMemory())).decoded(record(None, value))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"nonsense", "has a value that is not JSON"),
        pytest.param(b"[" * 5000, "has a value that is not JSON", id="deep"),
        (b'{"id": "x"}', "has a value that its schema refuses"),
    ],
)
def test_a_line_that_does_not_fit_is_refused(value: bytes, reason: str) -> None:
    with pytest.raises(LineError, match=reason):
        Encoder(RegistryClient(InMemory()), "t").encoded(None, value)


def test_a_topic_without_a_schema_is_refused() -> None:
    with pytest.raises(Failed, match="no subject other-value"):
        Encoder(RegistryClient(InMemory()), "other")
    with pytest.raises(Failed, match="xml-value is of type XML"):
        Encoder(RegistryClient(InMemory()), "xml")
    with pytest.raises(Failed, match=r"cannot write with empty-value: .* defines no message"):
        Encoder(RegistryClient(InMemory()), "empty")


def test_keys_without_a_schema_stay() -> None:
    client = InMemory()
    del client.subjects["t-key"]
    assert Encoder(RegistryClient(client), "t").encoded(b"k", None) == (b"k", None)


def test_a_registry_that_does_not_answer_is_one_line() -> None:
    client = client_of("http://127.0.0.1:1")
    with pytest.raises(Failed, match=r"^cannot read the schemas of t: .*refused"):
        Encoder(client, "t")


def test_an_address_and_a_user() -> None:
    client = client_of("https://me:p%40ss@host:1/ccompat")
    assert client.client._rest_client.session.auth is not None
    for wrong in ("localhost:8081", "ftp://x", "http://"):
        with pytest.raises(UsageFailed, match="--registry must be http"):
            client_of(wrong)


def test_types_that_json_does_not_have() -> None:
    assert (
        as_json({"a": b"\xe9", "b": 1.5, "c": None}) == '{"a": "é", "b": 1.5, "c": null}'.encode()
    )
