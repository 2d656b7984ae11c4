"""What a segment holds, whole, torn and damaged."""

from pathlib import Path

from ottla.log.inspect.folder import Segment
from ottla.log.inspect.summary import SegmentSummary, summary_of
from ottla.records.build import build_batch
from ottla.records.record import Record


def summary(folder: Path, data: bytes) -> SegmentSummary:
    path = folder / f"{5:020d}.log"
    path.write_bytes(data)
    return summary_of(Segment(5, path))


def batch(offset: int, at_ms: int) -> bytes:
    records = [Record(offset + number, at_ms + number, None, b"v") for number in range(2)]
    return build_batch(records, base_offset=offset, leader_epoch=0)


def test_batches_up_to_the_first_that_is_not_whole(tmp_path: Path) -> None:
    whole = batch(5, 200) + batch(7, 100)
    found = summary(tmp_path, whole)
    assert (found.batches, found.records, found.next_offset) == (2, 4, 9)
    assert (found.first_timestamp, found.last_timestamp) == (100, 201)
    assert (found.size_bytes, found.fault) == (len(whole), None)
    torn = summary(tmp_path, whole + batch(9, 300)[:-1])
    assert (torn.batches, torn.next_offset, torn.last_timestamp) == (2, 9, 201)
    assert torn.fault == f"{len(batch(9, 300)) - 1} bytes at the end are not a whole batch"
    damaged = summary(tmp_path, whole + bytes(80))
    assert damaged.batches == 2
    assert damaged.fault


def test_an_empty_segment(tmp_path: Path) -> None:
    assert summary(tmp_path, b"") == SegmentSummary(0, 0, 5, None, None, 0, 0, 0, None)
