"""Confluent's framing, compared with confluent-kafka's own."""

import pytest
from confluent_kafka.schema_registry.serde import SchemaId

from ottla.registry.framing import head, id_of


@pytest.mark.parametrize("schema_id", [1, 258, 2**31 - 1])
def test_the_head_is_the_clients(schema_id: int) -> None:
    assert head(schema_id) == SchemaId("AVRO", schema_id).id_to_bytes()
    assert id_of(head(schema_id) + b"data") == schema_id


@pytest.mark.parametrize("data", [b"", b"\x00\x00\x00\x01", b"\x01\x00\x00\x00\x01", b'{"a": 1}'])
def test_other_data_has_no_id(data: bytes) -> None:
    assert id_of(data) is None
