"""The log in memory answers for its epochs as the real one does."""

from __future__ import annotations

from pathlib import Path

from simulation.memory_log import Entry, MemoryLog, Value

from ottla.log.leader_epochs import LeaderEpochs


def test_epochs_are_those_of_the_real_log(tmp_path: Path) -> None:
    log, real = MemoryLog(), LeaderEpochs(str(tmp_path))
    for epoch, count in ((0, 3), (2, 0), (4, 2), (5, 1)):
        log.assign(epoch, log.end_offset)
        real.assign(epoch, log.end_offset)
        log.append([Entry(epoch, Value(1, number)) for number in range(count)])
    for end_offset in (6, 5, 4, 3, 1):
        log.truncate_to(end_offset)
        real.truncate_from_end(end_offset)
        assert log.starts == [tuple(each) for each in real.entries]
        for epoch in range(7):
            assert log.end_of(epoch) == real.end_of(epoch, log.end_offset)
        for offset in range(7):
            assert log.epoch_of(offset) == real.epoch_of(offset)
