"""The counts of one partition."""

from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.replica.counts import Counts


def test_appended_batches_are_counted() -> None:
    one = build_batch([Record(0, 1, None, b"a")] * 2)
    other = build_batch([Record(0, 1, None, b"bb")])
    counts = Counts()
    counts.add(list(iterate_headers(one + other)))
    counts.add(list(iterate_headers(other)))
    counts.add([])
    assert (counts.batches_in, counts.records_in) == (3, 4)
    assert counts.bytes_in == len(one) + 2 * len(other)
    assert counts.bytes_out == 0
