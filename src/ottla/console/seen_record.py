"""What a list keeps of a record: its beginning, so that a page of large records stays small."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ottla.messaging.record_headers import Headers, known_headers
from ottla.messaging.shown_bytes import ShownBytes, escaped, shown_in_line

MAX_KEY_BYTES: Final = 200
MAX_VALUE_BYTES: Final = 600
MAX_HEADERS: Final = 8
MAX_HEADER_BYTES: Final = 80

UNREADABLE: Final[Headers] = [("headers", b"(a name is not UTF-8: they cannot be read)")]

NO_BREAKS: Final = frozenset[str]()


class SeenRecord(NamedTuple):
    """A row. `at_ms` is None if the record has no time."""

    partition: int
    offset: int
    at_ms: int | None
    key: ShownBytes
    value: ShownBytes
    headers: list[tuple[str, ShownBytes]]
    more_headers: int


def seen_record(record: Any, form: str = "auto") -> SeenRecord:
    """Of librdkafka's record; `form` as of `shown_bytes`."""
    kind, at_ms = record.timestamp()
    headers = known_headers(record)
    if headers is None:
        headers = UNREADABLE
    return SeenRecord(
        record.partition(),
        record.offset(),
        at_ms if kind else None,
        shown_in_line(record.key(), MAX_KEY_BYTES, form),
        shown_in_line(record.value(), MAX_VALUE_BYTES, form),
        [
            (
                escaped(name[:MAX_KEY_BYTES], NO_BREAKS),
                shown_in_line(data, MAX_HEADER_BYTES, form),
            )
            for name, data in headers[:MAX_HEADERS]
        ],
        max(0, len(headers) - MAX_HEADERS),
    )
