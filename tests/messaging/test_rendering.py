"""Consumed records as lines."""

import json
from dataclasses import dataclass, field

import pytest

from ottla.messaging.rendering import Shown, escape, render_json, text_renderer, time_text


@dataclass
class FakeMessage:
    """A record as librdkafka gives it, with methods for fields."""

    key_: bytes | None = b"k"
    value_: bytes | None = b"v"
    headers_: list[tuple[str, bytes | None]] | None = None
    timestamp_: tuple[int, int] = field(default=(1, 1_700_000_000_123))

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return 17

    def key(self) -> bytes | None:
        return self.key_

    def value(self) -> bytes | None:
        return self.value_

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self.headers_

    def timestamp(self) -> tuple[int, int]:
        return self.timestamp_


def test_everything_shown_in_order() -> None:
    render = text_renderer(
        Shown(offsets=True, times=True, headers=True, keys=True), for_terminal=False
    )
    message = FakeMessage(headers_=[("a", b"1"), ("b", None)])
    assert render(message) == b"t-2@17\t2023-11-14T22:13:20.123Z\ta=1,b=null\tk\tv\n"
    assert render(FakeMessage(None, None)).endswith(b"\t-\tnull\tnull\n")


def test_a_pipe_gets_the_bytes_as_they_are() -> None:
    assert text_renderer(Shown(), for_terminal=False)(FakeMessage(value_=b"\x1b[2J\xff")) == (
        b"\x1b[2J\xff\n"
    )


def test_a_terminal_gets_escapes() -> None:
    render = text_renderer(Shown(), for_terminal=True)
    assert render(FakeMessage(value_=b"\x1b[2J\xff\na\tb")) == b"\\x1b[2J\\xff\\na\tb\n"
    assert escape("grüß €".encode()) == "grüß €".encode()


def test_json_line() -> None:
    line = render_json(FakeMessage())
    assert line.endswith(b"\n")
    assert json.loads(line)["offset"] == 17


@pytest.mark.parametrize(
    ("kind", "at_ms", "text"),
    [
        (0, -1, "-"),
        (1, -5, "-"),
        (1, 0, "1970-01-01T00:00:00.000Z"),
        (2, 253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (1, 2**63 - 1, f"{2**63 - 1}ms"),
    ],
)
def test_times_outside_the_calendar(kind: int, at_ms: int, text: str) -> None:
    assert time_text(kind, at_ms) == text
