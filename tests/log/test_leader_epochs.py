from pathlib import Path

import pytest

from ottla.log.leader_epochs import FILE_NAME, EpochStart, LeaderEpochs
from ottla.protocol.errors import ApiError, ErrorCode


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    epochs = LeaderEpochs(str(tmp_path))
    for epoch, start in ((2, 0), (4, 10), (7, 30)):
        epochs.assign(epoch, start)
    return epochs


def full_disk(*_: object, **__: object) -> None:
    raise ApiError(ErrorCode.kafka_storage_error, "the disk is full")


def test_the_file_is_kafkas(tmp_path: Path, epochs: LeaderEpochs) -> None:
    assert (tmp_path / FILE_NAME).read_text() == "0\n3\n2 0\n4 10\n7 30\n"
    assert LeaderEpochs(str(tmp_path)).entries == epochs.entries


def test_only_newer_epochs_are_noted(epochs: LeaderEpochs) -> None:
    epochs.assign(7, 50)
    epochs.assign(3, 60)
    assert epochs.latest == 7
    assert epochs.entries[-1] == EpochStart(7, 30)


def test_an_epoch_that_the_disk_refuses_is_noted_the_next_time(
    tmp_path: Path, epochs: LeaderEpochs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known here alone, no later append would write it, and a restart would not know of it."""
    before = list(epochs.entries)
    monkeypatch.setattr("ottla.log.leader_epochs.write_lines", full_disk)
    with pytest.raises(ApiError):
        epochs.assign(8, 30)
    assert epochs.entries == before
    monkeypatch.undo()
    epochs.assign(8, 30)
    assert LeaderEpochs(str(tmp_path)).entries == [*before[:2], EpochStart(8, 30)]


def test_an_epoch_in_which_nothing_was_written_is_replaced(epochs: LeaderEpochs) -> None:
    epochs.assign(8, 30)
    assert epochs.entries == [EpochStart(2, 0), EpochStart(4, 10), EpochStart(8, 30)]


def test_one_that_began_is_written_before_its_first_record(
    tmp_path: Path, epochs: LeaderEpochs
) -> None:
    stored = LeaderEpochs(str(tmp_path)).entries
    epochs.begin(8, 40)
    epochs.begin(8, 50)
    assert epochs.is_pending
    assert epochs.entries == [*stored, EpochStart(8, 40)]
    assert LeaderEpochs(str(tmp_path)).entries == stored
    # Another one that began there takes its place.
    epochs.begin(9, 40)
    epochs.store()
    assert not epochs.is_pending
    assert LeaderEpochs(str(tmp_path)).entries == [*stored, EpochStart(9, 40)]


def test_an_epoch_without_records_is_truncated_without_a_write(
    tmp_path: Path, epochs: LeaderEpochs, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = list(epochs.entries)
    monkeypatch.setattr("ottla.log.leader_epochs.write_lines", full_disk)
    epochs.begin(8, 40)
    epochs.truncate_from_end(40)
    assert (epochs.entries, epochs.is_pending) == (stored, False)
    fresh = LeaderEpochs(str(tmp_path / "missing"))
    fresh.begin(1, 0)
    fresh.clear()
    assert (fresh.entries, fresh.is_pending) == ([], False)
    monkeypatch.undo()
    epochs.begin(8, 40)
    epochs.truncate_from_end(20)
    assert LeaderEpochs(str(tmp_path)).entries == epochs.entries == stored[:2]
    epochs.begin(8, 20)
    epochs.clear()
    assert LeaderEpochs(str(tmp_path)).entries == []


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (7, (7, 99)),
        (8, (-1, -1)),
        (-1, (-1, -1)),
        (4, (4, 30)),
        (5, (4, 30)),
        (2, (2, 10)),
        (1, (1, 0)),
    ],
)
def test_the_end_of_an_epoch(epochs: LeaderEpochs, epoch: int, answer: tuple[int, int]) -> None:
    assert epochs.end_of(epoch, 99) == answer


def test_the_epoch_of_an_offset(epochs: LeaderEpochs) -> None:
    assert [epochs.epoch_of(offset) for offset in (0, 9, 10, 29, 30, 1_000)] == [2, 2, 4, 4, 7, 7]


def test_truncation_at_both_ends(tmp_path: Path, epochs: LeaderEpochs) -> None:
    epochs.truncate_from_end(30)
    assert epochs.entries == [EpochStart(2, 0), EpochStart(4, 10)]
    epochs.truncate_from_start(15)
    assert epochs.entries == [EpochStart(4, 15)]
    assert LeaderEpochs(str(tmp_path)).entries == [EpochStart(4, 15)]
    epochs.clear()
    assert LeaderEpochs(str(tmp_path)).entries == []
    assert epochs.latest == -1
    assert epochs.end_of(0, 5) == (-1, -1)


def test_a_damaged_file_counts_as_missing(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("0\n1\nx y\n")
    epochs = LeaderEpochs(str(tmp_path))
    assert epochs.entries == []
    epochs.assign(1, 0)
    assert LeaderEpochs(str(tmp_path)).latest == 1
