"""Turns lines of text into records: with a key before a separator, or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from ottla.messaging.jsonlines import Headers, LineError, Outgoing, decode_record

# A line without an end must not fill the memory. Kafka rejects records of this size anyway.
MAX_LINE_BYTES: Final = 100 * 1024 * 1024

Decode = Callable[[bytes], Outgoing]


def iterate_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines without their newline. A carriage return before it stays."""
    while line := stream.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise LineError(f"is longer than {MAX_LINE_BYTES // 1024 // 1024} MB")
        yield line[:-1] if line.endswith(b"\n") else line


def text_decoder(
    *,
    separator: str | None,
    key: str | None,
    null: str | None,
    headers: Headers,
    partition: int | None,
) -> Decode:
    """A decoder for plain lines. A part that equals `null` becomes an absent key or value."""
    mark = separator.encode() if separator is not None else None
    nothing = null.encode() if null is not None else None
    every_key = key.encode() if key is not None else None

    def decode(line: bytes) -> Outgoing:
        record_key, value = every_key, line
        if mark is not None:
            record_key, found, value = line.partition(mark)
            if not found:
                raise LineError(f"has no key separator {separator!r}")
        return Outgoing(
            None if nothing is not None and record_key == nothing else record_key,
            None if nothing is not None and value == nothing else value,
            headers,
            partition,
        )

    return decode


def json_decoder(
    *, headers: Headers, partition: int | None, partitions: int, repartition: bool
) -> Decode:
    """A decoder for JSON lines. A line's own partition must exist in the topic."""

    def decode(line: bytes) -> Outgoing:
        record = decode_record(line)
        if partition is not None or repartition:
            record.partition = partition
        elif record.partition is not None and record.partition >= partitions:
            raise LineError(
                f"names partition {record.partition}; the topic has 0 to {partitions - 1} "
                "(--repartition chooses by key instead)"
            )
        record.headers += headers
        return record

    return decode
