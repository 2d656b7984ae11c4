import os
from typing import Any

import pytest

from ottla.log.flush import flush
from ottla.log.truncation import truncate_fully, truncate_to
from ottla.protocol.errors import ApiError


@pytest.fixture
def long(bench: Any) -> Any:
    bench.log = bench.configure(segment_bytes=900).open()
    for number in range(20):
        sent = {"producer_id": 6, "producer_epoch": 0, "base_sequence": number * 3}
        bench.append(bench.log, 3, leader_epoch=number // 5, **sent)
    flush(bench.log)
    bench.all = bench.read_all(bench.log)
    assert len(bench.log.segments) > 3
    return bench


@pytest.mark.parametrize("offset", [57, 45, 30, 15, 3, 0])
def test_a_truncation_removes_records_epochs_and_producers(long: Any, offset: int) -> None:
    log = long.log
    removal = truncate_to(log, offset, now_ms=1)
    if removal is not None:
        removal.run()
    assert (log.end_offset, log.recovery_point) == (offset, offset)
    assert long.read_all(log) == long.all[:offset]
    assert log.epochs.latest == (offset - 1) // 15 if offset else log.epochs.latest == -1
    producer = log.producers.producers.get(6)
    assert (producer.last_sequence if producer else -1) == offset - 1
    assert len(long.names(".log")) == len(log.segments)
    sent = {"producer_id": 6, "producer_epoch": 0, "base_sequence": offset}
    assert long.append(log, 3, leader_epoch=9, **sent).first_offset == offset
    again = long.open(recovery_point=0)
    assert [record.offset for record in long.read_all(again)] == list(range(offset + 3))


def test_a_batch_is_never_cut_in_two(long: Any) -> None:
    truncate_to(long.log, 31, now_ms=1)
    assert long.log.end_offset == 30


def test_a_truncation_past_the_end_does_nothing(long: Any) -> None:
    assert truncate_to(long.log, 60, now_ms=1) is None
    assert truncate_to(long.log, 99, now_ms=1) is None
    assert long.log.end_offset == 60


@pytest.mark.parametrize("renamed", [0, 1, 2, 3, 5, 8])
def test_a_crash_amid_a_cut_leaves_no_gap(
    long: Any, renamed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def rename(source: str, target: str) -> None:
        if len(done) == renamed:
            raise OSError("crashed")
        os.replace(source, target)
        done.append(target)

    assert len(long.log.segments) >= 4
    with monkeypatch.context() as patched:
        patched.setattr("ottla.log.retention.os.rename", rename)
        with pytest.raises(ApiError):
            truncate_to(long.log, 10, now_ms=1)
    again = long.open(recovery_point=60)
    offsets = [record.offset for record in long.read_all(again)]
    assert offsets == list(range(again.end_offset))
    assert again.end_offset > 10


def test_a_log_can_restart_at_another_offset(long: Any) -> None:
    truncate_fully(long.log, 500, now_ms=1).run()
    log = long.log
    assert (log.start_offset, log.end_offset, log.size_bytes) == (500, 500, 0)
    assert log.epochs.entries == []
    assert not log.producers.producers
    assert long.append(log, 1).first_offset == 500
    assert len(long.names(".log")) == 1
