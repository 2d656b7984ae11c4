"""Confluent's message indexes."""

import io

import pytest
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

from ottla.registry.protobuf_framing import read_indexes, write_indexes


@pytest.mark.parametrize("indexes", [(0,), (1,), (0, 0), (2, 63, 64), (300, 0, 1)])
def test_indexes_are_those_of_confluent_kafka(indexes: tuple[int, ...]) -> None:
    out = io.BytesIO()
    ProtobufSerializer._encode_varints(out, list(indexes), zigzag=True)
    theirs = out.getvalue()

    assert write_indexes(indexes) == theirs
    assert read_indexes(b"head" + theirs + b"data", 4) == (indexes, 4 + len(theirs))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no message indexes"),
        (b"\x04\x02", "no message indexes"),
        (b"\x01", "-1 message indexes"),
        (b"\x02\x01", "the message index -1"),
        (b"\xff" * 9, "more than 32 bits"),
    ],
)
def test_other_bytes_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_indexes(data, 0)
