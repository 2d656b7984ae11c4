"""Records as lines of JSON: whatever bytes they have, they come back the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.messaging.jsonlines import LineError, decode_record, encode_record

BYTES = st.none() | st.binary(max_size=40) | st.text(max_size=20).map(lambda t: t.encode())
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


@given(
    key=BYTES,
    value=BYTES,
    headers=st.lists(st.tuples(NAMES, BYTES), max_size=4),
    partition=st.integers(0, 2**31 - 1),
    time=st.integers(0, 2**62),
)
def test_what_is_written_is_read_back_the_same(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    partition: int,
    time: int,
) -> None:
    line = encode_record("t", partition, 7, (1, time), key, value, headers)
    assert "\n" not in line
    record = decode_record(line.encode())
    assert (record.key, record.value, record.headers) == (key, value, headers)
    assert (record.partition, record.timestamp_ms) == (partition, time)


def test_shape() -> None:
    line = encode_record("t", 1, 2, (1, 3), b"k", b"\xff", [("h", b"x"), ("b", b"\xfe")])
    assert json.loads(line) == {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "timestamp": 3,
        "timestamp_type": "create",
        "key": "k",
        "value": "/w==",
        "value_base64": True,
        "headers": [
            {"name": "h", "value": "x"},
            {"name": "b", "value": "/g==", "value_base64": True},
        ],
    }


def test_record_without_a_time_says_null() -> None:
    document = json.loads(encode_record("t", 0, 0, (0, -1), None, None, []))
    assert (document["timestamp"], document["timestamp_type"]) == (None, None)
    assert (document["key"], document["value"]) == (None, None)


def test_the_append_time_is_not_sent() -> None:
    line = encode_record("t", 0, 0, (2, 1234), None, b"v", [])
    assert decode_record(line.encode()).timestamp_ms is None


def test_short_form_that_a_person_writes() -> None:
    record = decode_record(b'{"key": 7, "value": {"a": [1, "\xc3\xa9"]}, "headers": {"h": "x"}}')
    assert record.key == b"7"
    assert json.loads(record.value or b"") == {"a": [1, "é"]}
    assert record.headers == [("h", b"x")]
    assert record.partition is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "is not JSON"),
        (b"hello", "is not JSON"),
        (b'{"value": x}', r"is not JSON: Expecting value \(column 11\)$"),
        (b"[1]", "is not a JSON object"),
        (b'{"key": "k"}', 'has no "value"'),
        (b'{"valu": 1}', "unknown field 'valu'; allowed are topic"),
        (b'{"value": "!", "value_base64": true}', "not base64"),
        (b'{"value": 7, "value_base64": true}', "not base64"),
        (b'{"value": "x", "value_base64": "yes"}', "neither true nor false"),
        (b'{"value": 1, "partition": -1}', "integer"),
        (b'{"value": 1, "partition": true}', "integer"),
        (b'{"value": 1, "timestamp": "now"}', "integer"),
        (b'{"value": 1, "headers": 3}', "neither a list nor an object"),
        (b'{"value": 1, "headers": ["h"]}', "has a header that is not"),
        (b'{"value": "\\ud800"}', "surrogate"),
        (b"[" * 100_000, "is not JSON"),
        (b"\xff", "is not JSON"),
    ],
)
def test_an_invalid_line_says_why(line: bytes, message: str) -> None:
    with pytest.raises(LineError, match=message):
        decode_record(line)
