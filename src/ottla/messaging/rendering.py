"""One consumed record as bytes for standard output: a line of text, or a line of JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ottla.messaging.jsonlines import encode_record
from ottla.messaging.record_headers import headers_of

Render = Callable[[Any], bytes]

ABSENT: Final = b"null"
# 9999-12-31; a producer may send any number.
LATEST_MS: Final = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class Shown:
    """What precedes the value in a line, in this order, each followed by a tab."""

    offsets: bool = False
    times: bool = False
    headers: bool = False
    keys: bool = False


def render_json(message: Any) -> bytes:
    """The record without loss (see `jsonlines`). Raises HeadersError."""
    line = encode_record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp(),
        message.key(),
        message.value(),
        headers_of(message),
    )
    return line.encode("utf-8") + b"\n"


def text_renderer(shown: Shown, *, for_terminal: bool) -> Render:
    """Lines for people. A pipe gets the bytes as they are. On a terminal, control characters and
    invalid UTF-8 are escaped, since raw bytes could change its settings.
    """
    safe = escape if for_terminal else unchanged

    def render(message: Any) -> bytes:
        parts: list[bytes] = []
        if shown.offsets:
            position = f"{message.topic()}-{message.partition()}@{message.offset()}"
            parts.append(position.encode("utf-8"))
        if shown.times:
            parts.append(time_text(*message.timestamp()).encode("ascii"))
        if shown.headers:
            parts.append(headers_text(headers_of(message), safe))
        if shown.keys:
            parts.append(safe(message.key()))
        parts.append(safe(message.value()))
        return b"\t".join(parts) + b"\n"

    return render


def unchanged(data: bytes | None) -> bytes:
    return ABSENT if data is None else data


def escape(data: bytes | None) -> bytes:
    """The bytes as text that is safe to show: tabs stay, other control characters are escaped."""
    if data is None:
        return ABSENT
    text = data.decode("utf-8", errors="backslashreplace")
    if not text.isprintable():
        text = "".join(
            character
            if character.isprintable() or character == "\t"
            else character.encode("unicode_escape").decode("ascii")
            for character in text
        )
    return text.encode("utf-8")


def time_text(kind: int, at_ms: int) -> str:
    """A record's time in UTC, to the millisecond; `-` if it has none."""
    if not kind or not 0 <= at_ms <= LATEST_MS:
        return "-" if not kind or at_ms < 0 else f"{at_ms}ms"
    seconds, rest_ms = divmod(at_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ms:03d}Z"


def ms_text(at_ms: int | None) -> str | None:
    """A time in UTC, to the millisecond; None if it is not known."""
    return None if at_ms is None else time_text(1, at_ms)


def headers_text(
    headers: Sequence[tuple[str, bytes | None]], safe: Callable[[bytes | None], bytes]
) -> bytes:
    """`name=value,name=value`, or `-` for none."""
    if not headers:
        return b"-"
    return b",".join(safe(name.encode("utf-8")) + b"=" + safe(value) for name, value in headers)
