"""Records in a format of the user's, with kcat's placeholders: `ottla consume --format`.

    %t topic      %p partition   %o offset      %T timestamp in ms since 1970, -1 if there is none
    %k key        %K its length  %s value       %S its length (of null: -1)
    %h headers    %% a percent sign             \\n \\t \\r \\\\ \\0 \\xHH as in C

A record is followed only by what the format says: it has to contain its own line end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.messaging.record_headers import headers_of
from ottla.messaging.rendering import Render, escape, headers_text, unchanged
from ottla.wording.errors import ReportedError

Part = bytes | Callable[[Any], bytes]
Safe = Callable[[bytes | None], bytes]

ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
EXAMPLE: Final = r"For example: --format '%t-%p@%o %k: %s\n'"


class FormatError(ReportedError):
    """The format has an unknown placeholder or escape sequence."""

    is_usage = True


def format_renderer(text: str, *, for_terminal: bool) -> Render:
    """Renders records in this format. Raises FormatError."""
    parts = parse_format(text, escape if for_terminal else unchanged)

    def render(message: Any) -> bytes:
        return b"".join(part if isinstance(part, bytes) else part(message) for part in parts)

    return render


def parse_format(text: str, safe: Safe) -> Sequence[Part]:
    """The format's parts: bytes as they are, and functions of a record."""
    fields: dict[str, Callable[[Any], bytes]] = {
        "t": lambda message: str(message.topic()).encode(),
        "p": lambda message: b"%d" % message.partition(),
        "o": lambda message: b"%d" % message.offset(),
        "T": lambda message: b"%d" % (message.timestamp()[1] if message.timestamp()[0] else -1),
        "k": lambda message: safe(message.key()),
        "K": lambda message: length(message.key()),
        "s": lambda message: safe(message.value()),
        "S": lambda message: length(message.value()),
        "h": lambda message: headers_text(headers_of(message), safe),
    }
    parts: list[Part] = []
    rest = text
    while rest:
        mark, code = rest[0], rest[1:2]
        if mark == "%":
            if code == "%":
                parts.append(b"%")
            elif code in fields:
                parts.append(fields[code])
            else:
                allowed = " ".join(f"%{each}" for each in fields)
                raise FormatError(
                    f"--format has no placeholder '%{code}'; there are {allowed} %%.", EXAMPLE
                )
            rest = rest[2:]
        elif mark == "\\":
            data, rest = escaped(rest)
            parts.append(data)
        else:
            parts.append(mark.encode())
            rest = rest[1:]
    return parts


def escaped(text: str) -> tuple[bytes, str]:
    """The byte of the escape sequence at the start of the text, and the text after it."""
    code, digits = text[1:2], text[2:4]
    if code in ESCAPES:
        return ESCAPES[code], text[2:]
    if (
        code == "x"
        and len(digits) == 2
        and all(each in "0123456789abcdefABCDEF" for each in digits)
    ):
        return bytes([int(digits, 16)]), text[4:]
    raise FormatError(
        rf"--format has no escape sequence '{text[:2]}'; there are \n \t \r \0 \\ \xHH.", EXAMPLE
    )


def length(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)
