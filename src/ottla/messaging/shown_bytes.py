"""Keys and values for people: as JSON, text or bytes in hex, and never more than fits.

Pure. Control characters and marks that turn the direction of writing are escaped, so what is shown
is what is there; that it is no HTML is up to the page.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

FORMS: Final = ("auto", "json", "text", "hex")
HEX_COLUMNS: Final = 16
MAX_JSON_BYTES: Final = 1 << 20
"""More is shown as text: to parse it takes too long."""
BREAKS: Final = frozenset("\n\t")


class ShownBytes(NamedTuple):
    """`kind`: null, empty, json, text or hex. `more_bytes`: that are not shown."""

    kind: str
    text: str
    size_bytes: int
    more_bytes: int = 0


def shown_in_line(data: bytes | None, most_bytes: int, form: str = "auto") -> ShownBytes:
    """In one line of a list."""
    return _shown(data, most_bytes, "text" if form == "json" else form, in_line=True)


def shown_whole(data: bytes | None, most_bytes: int, form: str = "auto") -> ShownBytes:
    """In as many lines as it takes: JSON indented, bytes in columns."""
    return _shown(data, most_bytes, form, in_line=False)


def _shown(data: bytes | None, most_bytes: int, form: str, *, in_line: bool) -> ShownBytes:
    if data is None:
        return ShownBytes("null", "null", 0)
    if not data:
        return ShownBytes("empty", "", 0)
    size, part = len(data), data[:most_bytes]
    more = size - len(part)
    if form in ("auto", "json") and not in_line and more == 0 and size <= MAX_JSON_BYTES:
        indented = _json(data)
        if indented is not None:
            return ShownBytes("json", indented, size)
    text = _text(part, is_cut=more > 0)
    if form == "hex" or (text is None and form != "text"):
        return ShownBytes("hex", part.hex(" ") if in_line else hex_lines(part), size, more)
    if text is None:
        text = part.decode("utf-8", errors="backslashreplace")
    return ShownBytes("text", escaped(text, frozenset() if in_line else BREAKS), size, more)


def _json(data: bytes) -> str | None:
    """Indented, with text as it is; None if it is no object or array."""
    if data[:1] not in (b"{", b"["):
        return None
    try:
        text = json.dumps(json.loads(data), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return None
    return escaped(text, BREAKS)


def _text(part: bytes, *, is_cut: bool) -> str | None:
    """None if it is not UTF-8. What is cut may end within a character."""
    try:
        return part.decode("utf-8")
    except UnicodeDecodeError as error:
        if is_cut and error.start >= len(part) - 3 and error.reason == "unexpected end of data":
            return part[: error.start].decode("utf-8")
        return None


def escaped(text: str, kept: frozenset[str]) -> str:
    """Without characters that cannot be seen, but those that are kept."""
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or each in kept
        else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def hex_lines(data: bytes) -> str:
    """`00000010  68 65 6c 6c 6f  |hello|`, a line for each 16 bytes."""
    lines = []
    for at in range(0, len(data), HEX_COLUMNS):
        part = data[at : at + HEX_COLUMNS]
        signs = "".join(chr(each) if 32 <= each < 127 else "." for each in part)
        lines.append(f"{at:08x}  {part.hex(' '):<{3 * HEX_COLUMNS - 1}}  |{signs}|")
    return "\n".join(lines)
