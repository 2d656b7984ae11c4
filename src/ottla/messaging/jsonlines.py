"""One record as one line of JSON, without loss: the format of `consume --json` and `produce
--json`.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1700000000000, "timestamp_type":
     "create", "key": "k", "value": "v", "headers": [{"name": "h", "value": "x"}]}

UTF-8 bytes are written as text. Other bytes are written as base64 and marked: with `"key_base64":
true`, `"value_base64": true`, or in a header `"value_base64": true`. An absent key or value (a
tombstone's value) is `null`. A timestamp is in ms since 1970, or `null`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Headers = list[tuple[str, bytes | None]]

FIELDS: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "key_base64",
    "value",
    "value_base64",
    "headers",
)
TIMESTAMP_TYPES: Final = {0: None, 1: "create", 2: "append"}


class LineError(ValueError):
    """A line that is not a record. The message says why."""


@dataclass(slots=True)
class Outgoing:
    """A record to send. Partition None: the partitioner chooses. Time None: now."""

    key: bytes | None
    value: bytes | None
    headers: Headers = field(default_factory=list)
    partition: int | None = None
    timestamp_ms: int | None = None


def put_bytes(into: dict[str, Any], name: str, data: bytes | None) -> None:
    """Add the bytes as text if they are UTF-8, else as base64 with its flag."""
    if data is None:
        into[name] = None
        return
    try:
        into[name] = data.decode("utf-8")
    except UnicodeDecodeError:
        into[name] = base64.b64encode(data).decode("ascii")
        into[f"{name}_base64"] = True


def encode_record(
    topic: str,
    partition: int,
    offset: int,
    timestamp: tuple[int, int],
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> str:
    """The line, without its newline. `timestamp` is librdkafka's (type, ms)."""
    kind, timestamp_ms = timestamp
    document: dict[str, Any] = {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": timestamp_ms if TIMESTAMP_TYPES.get(kind) else None,
        "timestamp_type": TIMESTAMP_TYPES.get(kind),
    }
    put_bytes(document, "key", key)
    put_bytes(document, "value", value)
    listed: list[dict[str, Any]] = []
    for name, content in headers:
        header: dict[str, Any] = {"name": name}
        put_bytes(header, "value", content)
        listed.append(header)
    document["headers"] = listed
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def decode_record(line: bytes) -> Outgoing:
    """The record of one line. Raises LineError. Ignores topic and offset.

    A key or value that is neither text nor null (an object, a number) is sent as its JSON text.
    """
    try:
        document = json.loads(line)
    except json.JSONDecodeError as error:
        raise LineError(f"is not JSON: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise LineError(f"is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise LineError('is not a JSON object such as {"key": "k", "value": "v"}')
    for name in document:
        if name not in FIELDS:
            raise LineError(f"has the unknown field {name!r}; allowed are {', '.join(FIELDS)}")
    if "value" not in document:
        raise LineError('has no "value" (for a tombstone give "value": null)')
    timestamp_ms = get_number(document, "timestamp")
    if document.get("timestamp_type") == "append":
        # The append time of another log; this log will assign its own.
        timestamp_ms = None
    return Outgoing(
        get_bytes(document, "key"),
        get_bytes(document, "value"),
        get_headers(document.get("headers")),
        get_number(document, "partition"),
        timestamp_ms,
    )


def get_bytes(document: dict[str, Any], name: str) -> bytes | None:
    value, flag = document.get(name), document.get(f"{name}_base64", False)
    if not isinstance(flag, bool):
        raise LineError(f'has a "{name}_base64" that is neither true nor false')
    if value is None:
        return None
    if flag:
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError, TypeError) as error:
            raise LineError(f'has a "{name}" that is not base64: {error}') from error
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise LineError(f'has half of a surrogate pair in "{name}"') from error


def get_number(document: dict[str, Any], name: str) -> int | None:
    value = document.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise LineError(f'has a "{name}" that is not an integer of 0 or more: {value!r}')
    return value


def get_headers(given: Any) -> Headers:
    if given is None:
        return []
    if isinstance(given, dict):
        given = [{"name": name, "value": value} for name, value in given.items()]
    if not isinstance(given, list):
        raise LineError('has "headers" that are neither a list nor an object')
    found: Headers = []
    for header in given:
        if not isinstance(header, dict) or not isinstance(header.get("name"), str):
            raise LineError('has a header that is not {"name": "...", "value": "..."}')
        found.append((header["name"], get_bytes(header, "value")))
    return found
