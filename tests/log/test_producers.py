from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import pytest

from ottla.log import names
from ottla.log.flush import flush
from ottla.log.producer_state import ProducerState
from ottla.log.producers import load_snapshot, note_batches
from ottla.records.build import build_batch
from ottla.records.control import ControlType, write_end_marker
from ottla.records.header import read_header
from ottla.records.record import Record

T = TypeVar("T")


def _sent(sequence: int) -> dict[str, int]:
    return {"producer_id": 6, "producer_epoch": 0, "base_sequence": sequence}


def test_a_restart_knows_the_last_batch_again(bench: Any) -> None:
    log = bench.open()
    for number in range(4):
        bench.append(log, 3, **_sent(number * 3))
    flush(log)
    log.close()
    again = bench.open(recovery_point=12, clean=True)
    assert bench.append(again, 3, **_sent(9)).is_duplicate
    assert bench.append(again, 3, **_sent(12)).first_offset == 12


def test_a_damaged_snapshot_gives_way_to_the_one_before(bench: Any) -> None:
    log = bench.configure(segment_bytes=700).open()
    for number in range(12):
        bench.append(log, 3, **_sent(number * 3))
    log.close()
    assert len(log.snapshots) > 2
    for offset in log.snapshots[-2:]:
        (bench.folder / names.file_name(offset, names.SNAPSHOT)).write_bytes(b"torn")
    again = bench.open(recovery_point=36, clean=True)
    assert again.producers.producers[6].last_sequence == 35
    assert len(again.snapshots) == len(log.snapshots) - 2


def test_another_logs_snapshot_is_not_believed(
    bench: Any, make_bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Its checksum is right; but its producer wrote another batch last."""
    other = make_bench("other-0")
    logs = []
    for each, batches in ((bench, 4), (other, 2)):
        log = each.open()
        for number in range(batches):
            sent = {"producer_id": 6, "producer_epoch": 0, "base_sequence": number * 3}
            each.append(log, 3, **sent)
        log.close()
        logs.append(log)
    name = names.file_name(12, names.SNAPSHOT)
    theirs = other.folder / names.file_name(6, names.SNAPSHOT)
    (bench.folder / name).write_bytes(theirs.read_bytes())
    again = bench.open(recovery_point=12, clean=True)
    assert again.producers.producers[6].last_sequence == 11
    assert caplog.messages == [
        f"{bench.folder}/{name} is damaged (it is of another log or offset): the producers are"
        " read from the batches"
    ]


def test_a_folder_in_the_place_of_a_snapshot_is_set_aside(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    log = bench.open()
    bench.append(log, 3, producer_id=6, producer_epoch=0, base_sequence=0)
    log.close()
    path = bench.folder / names.file_name(3, names.SNAPSHOT)
    path.unlink()
    path.mkdir()
    again = bench.open(recovery_point=3)
    assert again.producers.producers[6].last_sequence == 2
    assert path.with_name(path.name + ".damaged").is_dir()
    assert len(caplog.messages) == 1


def test_a_snapshot_is_taken_for_each_new_segment(bench: Any) -> None:
    log = bench.configure(segment_bytes=700).open()
    for number in range(12):
        bench.append(log, 3, **_sent(number * 3))
    assert log.snapshots == [segment.base_offset for segment in log.segments[1:]]
    for offset in log.snapshots:
        state = load_snapshot(str(bench.folder), list(log.snapshots), offset, log.segments)
        assert state is not None
        assert state.producers[6].last_sequence == offset - 1


def test_markers_end_transactions_also_after_a_restart(bench: Any) -> None:
    log = bench.open()
    bench.append(log, 3, is_transactional=True, **_sent(0))
    assert log.last_stable_offset(3) == 0
    reopened = bench.open()
    assert reopened.last_stable_offset(3) == 0

    marker = [Record(0, 5, bytes((0, 0, 0, 1)), bytes((0, 0, 0, 0, 0, 2)))]
    bench.append(
        reopened, marker, is_transactional=True, is_control=True, producer_id=6, producer_epoch=0
    )
    for each in (bench.open(), reopened):
        assert each.last_stable_offset(3) == 0, "the marker is not committed"
        assert each.last_stable_offset(4) == 4
    assert reopened.last_stable_offset(4) == 4


def test_the_stable_offset_is_never_below_the_log_start(bench: Any) -> None:
    log = bench.open()
    bench.append(log, 3, is_transactional=True, **_sent(0))
    log.advance_start(2)
    assert log.last_stable_offset(3) == 2


def test_after_damaged_snapshots_the_batches_say_who_the_producers_are(bench: Any) -> None:
    """Only a clean log that never had a snapshot has no producers."""
    log = bench.open()
    bench.append(log, 3, is_transactional=True, **_sent(0))
    log.close()
    (bench.folder / names.file_name(3, names.SNAPSHOT)).write_bytes(b"torn")
    again = bench.open(recovery_point=3, clean=True)
    assert again.last_stable_offset(3) == 0
    assert bench.append(again, 3, is_transactional=True, **_sent(3)).first_offset == 3


class Counted(Sequence[T]):
    """Counts how often an item of it is taken."""

    def __init__(self, items: list[T]) -> None:
        self.items = items
        self.taken = 0

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, number: Any) -> Any:
        self.taken += 1
        return self.items[number]

    def __iter__(self) -> Iterator[T]:
        for item in self.items:
            self.taken += 1
            yield item


def test_many_markers_at_once_are_noted_in_one_pass(bench: Any) -> None:
    """A follower's fetch of small transactions has thousands."""
    log = bench.open()
    data = build_batch(
        [Record(0, 1, None, b"v")],
        producer_id=6,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    marker = write_end_marker(ControlType.abort, 6, 0, 3, 1)
    batches = [data, marker] * 300
    headers = [read_header(batch) for batch in batches]
    for offset, header in enumerate(headers):
        header.base_offset = offset
        header.base_sequence = -1 if header.is_control else offset // 2
    for buffers in (batches, [b"".join(batches)]):
        state = ProducerState()
        counted, pieces = Counted(headers), Counted(buffers)
        note_batches(state, counted, pieces, log.active)
        assert (state.end_offset, state.producers[6].last_sequence) == (600, 299)
        assert state.first_unstable_offset(600) is None
        assert (counted.taken, pieces.taken) == (601, len(buffers))
        log.active.txn_index = None
