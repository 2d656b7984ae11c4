"""Lines into records."""

from io import BytesIO
from typing import Any

import pytest

from ottla.messaging import lines as produce_lines
from ottla.messaging.jsonlines import LineError, Outgoing
from ottla.messaging.lines import (
    Decode,
    iterate_lines,
    json_decoder,
    text_decoder,
)


def text(**given: Any) -> Decode:
    options: dict[str, Any] = {
        "separator": None,
        "key": None,
        "null": None,
        "headers": [],
        "partition": None,
    }
    return text_decoder(**{**options, **given})


def test_lines_keep_every_byte_but_their_newline() -> None:
    data = b"a\n\n b\r\n\x00\xff\nlast"
    assert list(iterate_lines(BytesIO(data))) == [b"a", b"", b" b\r", b"\x00\xff", b"last"]
    assert list(iterate_lines(BytesIO(b""))) == []


def test_line_without_an_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce_lines, "MAX_LINE_BYTES", 10)
    assert list(iterate_lines(BytesIO(b"x" * 10))) == [b"x" * 10]
    with pytest.raises(LineError, match="is longer than"):
        list(iterate_lines(BytesIO(b"x" * 12)))


def test_plain_line_is_a_value() -> None:
    assert text()(b"a:b") == Outgoing(None, b"a:b")
    assert text(key="k", partition=3)(b"v") == Outgoing(b"k", b"v", [], 3)


def test_key_ends_at_the_first_separator() -> None:
    assert text(separator="::")(b"k::v::w") == Outgoing(b"k", b"v::w")
    with pytest.raises(LineError, match="has no key separator '::'"):
        text(separator="::")(b"k:v")


def test_null_text_is_an_absent_part() -> None:
    decode = text(separator=":", null="-")
    assert decode(b"-:v") == Outgoing(None, b"v")
    assert decode(b"k:-") == Outgoing(b"k", None)
    assert decode(b":") == Outgoing(b"", b"")


def test_json_line_names_its_partition() -> None:
    decode = json_decoder(headers=[("h", b"1")], partition=None, partitions=2, repartition=False)
    record = decode(b'{"value": "v", "partition": 1, "headers": [{"name": "a", "value": null}]}')
    assert record == Outgoing(None, b"v", [("a", None), ("h", b"1")], 1)
    with pytest.raises(LineError, match=r"names partition 2; the topic has 0 to 1 \(--repartition"):
        decode(b'{"value": "v", "partition": 2}')


@pytest.mark.parametrize(("partition", "repartition"), [(0, False), (0, True), (None, True)])
def test_the_partition_of_the_line_is_ignored(partition: int | None, repartition: bool) -> None:
    decode = json_decoder(headers=[], partition=partition, partitions=2, repartition=repartition)
    assert decode(b'{"value": "v", "partition": 99}').partition == partition
