"""Reads a log as a consumer under read_committed does (the Java client's CompletedFetch)."""

from collections.abc import Sequence

from ottla.log.aborted_transactions import aborted_transactions
from ottla.log.log import Log
from ottla.log.transaction_index import AbortedTransaction
from ottla.records.control import ControlType, read_end_marker
from ottla.records.header import iterate_headers
from ottla.records.iterate import iterate_records
from ottla.records.record import Record


def fetch_committed(
    log: Log, offset: int, max_bytes: int = 700
) -> tuple[bytes, Sequence[AbortedTransaction]]:
    """One fetch: the bytes, and the aborted transactions that come with them."""
    up_to = log.last_stable_offset(log.end_offset)
    found = log.read(offset, max_bytes=max_bytes, up_to_offset=up_to)
    return found.read(), aborted_transactions(log, found, offset, up_to)


def read_committed(log: Log, max_bytes: int = 700) -> list[Record]:
    """Every record that the consumer returns to its application."""
    offset = log.start_offset
    returned: list[Record] = []
    while True:
        data, listed = fetch_committed(log, offset, max_bytes)
        waiting = sorted(listed, key=lambda each: each.first_offset)
        aborted: set[int] = set()
        at = 0
        for header in iterate_headers(data):
            batch = data[at : at + header.size_bytes]
            if len(batch) < header.size_bytes:
                break
            at += header.size_bytes
            while waiting and waiting[0].first_offset <= header.last_offset:
                aborted.add(waiting.pop(0).producer_id)
            if header.is_control:
                marker = read_end_marker(batch)
                if marker is not None and marker.type is ControlType.abort:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                returned += iterate_records(batch)
            offset = header.next_offset
        if at == 0:
            return [each for each in returned if each.offset >= log.start_offset]
