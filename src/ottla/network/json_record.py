"""Records as objects of JSON.

A key, a value or a header is a text, null, or {"base64": "..."} for bytes that are no UTF-8.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from typing import Any

from ottla.records.record import Header, Record


class MessageError(Exception):
    """The page has sent something else than it should; the text says what."""


def bytes_in(value: object, what: str) -> bytes | None:
    """Raises MessageError."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    if isinstance(value, dict) and isinstance(value.get("base64"), str):
        try:
            return b64decode(value["base64"], validate=True)
        except (Error, ValueError):
            pass
    raise MessageError(f'{what} must be a text, null, or {{"base64": "..."}}')


def record_in(message: Mapping[str, Any], now_ms: int) -> Record:
    """What a page wants to write. Raises MessageError."""
    headers: list[Header] = []
    given = message.get("headers", {})
    if not isinstance(given, dict):
        raise MessageError("headers must be an object")
    for name, value in given.items():
        try:
            name.encode()
        except UnicodeEncodeError:
            raise MessageError("names of headers must be texts of Unicode") from None
        headers.append((name, bytes_in(value, f"header {name[:100]}")))
    key, value = bytes_in(message.get("key"), "key"), bytes_in(message.get("value"), "value")
    return Record(0, now_ms, key, value, tuple(headers))


def shown(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def object_of(record: Record) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": shown(record.key),
        "value": shown(record.value),
    }
    if record.headers:
        fields["headers"] = {
            name.encode(errors="surrogateescape").decode(errors="replace"): shown(value)
            for name, value in record.headers
        }
    return fields
