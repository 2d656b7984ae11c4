"""One record, as a reader sees it."""

from dataclasses import dataclass

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Record:
    """A record. `offset` and `timestamp_ms` are absolute; a `value` of None is a tombstone.

    Header names are UTF-8; invalid bytes are kept as lone surrogates ("surrogateescape").
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
