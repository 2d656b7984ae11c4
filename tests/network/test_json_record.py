from __future__ import annotations

from typing import Any

import pytest

from ottla.network.json_record import MessageError, bytes_in, object_of, record_in, shown
from ottla.records.record import Record


@pytest.mark.parametrize(
    ("data", "value"),
    [(None, None), (b"", ""), ("Grüße".encode(), "Grüße"), (b"\xff\0", {"base64": "/wA="})],
)
def test_bytes_are_texts_if_they_can_be(data: bytes | None, value: Any) -> None:
    assert shown(data) == value
    assert bytes_in(value, "value") == data


@pytest.mark.parametrize("wrong", [7, True, [], {}, {"base64": 7}, {"base64": "a"}, {"x": "/wA="}])
def test_what_is_no_bytes(wrong: Any) -> None:
    with pytest.raises(MessageError, match="value must be a text, null, or"):
        bytes_in(wrong, "value")


def test_a_record_there_and_back() -> None:
    message = {"key": "k", "value": None, "headers": {"a": "b", "c": None, "d": {"base64": "/w=="}}}
    record = record_in(message, 7)
    assert record == Record(0, 7, b"k", None, (("a", b"b"), ("c", None), ("d", b"\xff")))
    assert object_of(record) == message | {"offset": 0, "timestamp": 7}
    assert object_of(record_in({}, 7)) == {"offset": 0, "timestamp": 7, "key": None, "value": None}


def test_header_names_that_are_no_utf_8() -> None:
    record = Record(0, 7, None, None, ((b"\xff".decode(errors="surrogateescape"), b"x"),))
    assert object_of(record)["headers"] == {"\ufffd": "x"}


@pytest.mark.parametrize("headers", [[], "a", 7])
def test_headers_are_an_object(headers: Any) -> None:
    with pytest.raises(MessageError, match="headers must be an object"):
        record_in({"headers": headers}, 7)


@pytest.mark.parametrize("name", ["\ud800", "a\udcff"])
def test_names_of_headers_are_unicode(name: str) -> None:
    with pytest.raises(MessageError, match="names of headers must be texts of Unicode"):
        record_in({"headers": {name: "x"}}, 7)
