"""The caller's identity from the first bytes of a connection."""

import struct

import pytest

from ottla.testing.proxy import MoreBytesError, read_broker


def frame(client_id: bytes) -> bytes:
    return struct.pack(">ihhih", 10 + len(client_id), 1, 17, 7, len(client_id)) + client_id


@pytest.mark.parametrize(
    ("client_id", "broker"),
    [
        (b"broker-1-fetcher-0", 1),
        (b"broker-12-controller", 12),
        (b"broker-1", None),
        (b"broker-x-fetcher", None),
        (b"rdkafka", None),
        (b"", None),
        (b"\xff\xfe", None),
    ],
)
def test_the_client_id_identifies_the_broker(client_id: bytes, broker: int | None) -> None:
    assert read_broker(frame(client_id)) == broker
    assert read_broker(frame(client_id) + b"more of the body") == broker


def test_too_few_bytes_do_not_identify_the_caller() -> None:
    whole = frame(b"broker-3-fetcher-0")
    for length in range(len(whole)):
        with pytest.raises(MoreBytesError):
            read_broker(whole[:length])


def test_a_null_or_very_long_client_id_is_not_a_broker() -> None:
    assert read_broker(struct.pack(">ihhih", 10, 1, 17, 7, -1)) is None
    assert read_broker(struct.pack(">ihhih", 10, 1, 17, 7, 32767)) is None
