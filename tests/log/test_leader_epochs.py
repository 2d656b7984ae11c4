import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ottla.log.leader_epochs import FILE_NAME, EpochStart, LeaderEpochs
from ottla.protocol.errors import ApiError


def write(epochs: LeaderEpochs) -> None:
    """As a flush does, if anything has changed."""
    task = epochs.write()
    if task is not None:
        task.run()
    assert not epochs.is_dirty


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    epochs = LeaderEpochs(str(tmp_path))
    for epoch, start in ((2, 0), (4, 10), (7, 30)):
        epochs.assign(epoch, start)
    write(epochs)
    return epochs


def test_the_file_is_kafkas(tmp_path: Path, epochs: LeaderEpochs) -> None:
    assert (tmp_path / FILE_NAME).read_text() == "0\n3\n2 0\n4 10\n7 30\n"
    assert LeaderEpochs(str(tmp_path)).entries == epochs.entries
    assert epochs.write() is None


def test_only_newer_epochs_are_noted(epochs: LeaderEpochs) -> None:
    epochs.assign(7, 50)
    epochs.assign(3, 60)
    assert epochs.latest == 7
    assert epochs.entries[-1] == EpochStart(7, 30)
    assert not epochs.is_dirty


def test_the_file_is_replaced_by_one_that_is_on_the_disk(
    tmp_path: Path, epochs: LeaderEpochs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure it has the new epochs or those before, which nothing else knows."""
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def noted_sync(fd: int) -> None:
        steps.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        sync(fd)

    def noted_replace(*names: str, **folders: Any) -> None:
        steps.append("replace")
        replace(*names, **folders)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    epochs.assign(8, 40)
    assert LeaderEpochs(str(tmp_path)).latest == 7
    write(epochs)
    assert steps == [f"{FILE_NAME}.tmp", "replace", tmp_path.name]
    assert LeaderEpochs(str(tmp_path)).entries == epochs.entries


def test_what_the_disk_refuses_is_written_the_next_time(
    tmp_path: Path, epochs: LeaderEpochs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    epochs.assign(8, 40)
    task = epochs.write()
    assert task is not None
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space"):
            task.run()
    assert epochs.is_dirty
    write(epochs)
    assert LeaderEpochs(str(tmp_path)).entries == epochs.entries


def test_of_two_writes_the_later_one_stays(tmp_path: Path, epochs: LeaderEpochs) -> None:
    epochs.assign(8, 40)
    first = epochs.write()
    epochs.assign(9, 50)
    second = epochs.write()
    assert first is not None
    assert second is not None
    second.run()
    first.run()
    assert LeaderEpochs(str(tmp_path)).entries == epochs.entries


def test_a_folder_that_has_got_the_name_meanwhile_is_left_alone(
    tmp_path: Path, epochs: LeaderEpochs
) -> None:
    """The topic was deleted and made again."""
    folder, renamed = tmp_path / "t-0", tmp_path / "t-0.0123-delete"
    folder.mkdir()
    moved = LeaderEpochs(str(folder))
    moved.assign(3, 0)
    task = moved.write()
    assert task is not None
    folder.rename(renamed)
    folder.mkdir()
    task.run()
    assert not list(folder.iterdir())
    assert LeaderEpochs(str(renamed)).latest == 3
    shutil.rmtree(renamed)
    moved.assign(4, 9)
    moved.move_to(str(renamed))
    with pytest.raises(ApiError, match="cannot open"):
        moved.write()


def test_an_epoch_in_which_nothing_was_written_is_replaced(epochs: LeaderEpochs) -> None:
    epochs.assign(8, 30)
    assert epochs.entries == [EpochStart(2, 0), EpochStart(4, 10), EpochStart(8, 30)]


def test_one_that_began_is_written_after_its_first_record(
    tmp_path: Path, epochs: LeaderEpochs
) -> None:
    stored = LeaderEpochs(str(tmp_path)).entries
    epochs.begin(8, 40)
    epochs.begin(8, 50)
    assert (epochs.is_pending, epochs.is_dirty) == (True, False)
    assert epochs.entries == [*stored, EpochStart(8, 40)]
    # Another one that began there takes its place.
    epochs.begin(9, 40)
    epochs.truncate_from_start(5)
    write(epochs)
    assert LeaderEpochs(str(tmp_path)).entries == [EpochStart(2, 5), *stored[1:]]
    epochs.confirm()
    write(epochs)
    assert not epochs.is_pending
    assert LeaderEpochs(str(tmp_path)).entries == [EpochStart(2, 5), *stored[1:], (9, 40)]


def test_an_epoch_without_records_is_truncated_without_a_write(
    tmp_path: Path, epochs: LeaderEpochs
) -> None:
    stored = list(epochs.entries)
    epochs.begin(8, 40)
    epochs.truncate_from_end(40)
    assert (epochs.entries, epochs.is_pending, epochs.is_dirty) == (stored, False, False)
    fresh = LeaderEpochs(str(tmp_path / "missing"))
    fresh.begin(1, 0)
    fresh.clear()
    assert (fresh.entries, fresh.is_pending, fresh.is_dirty) == ([], False, False)
    epochs.begin(8, 40)
    epochs.truncate_from_end(20)
    write(epochs)
    assert LeaderEpochs(str(tmp_path)).entries == epochs.entries == stored[:2]
    epochs.begin(8, 20)
    epochs.clear()
    write(epochs)
    assert LeaderEpochs(str(tmp_path)).entries == []


def test_recovery_compares_the_file_with_the_batches(epochs: LeaderEpochs) -> None:
    before = list(epochs.entries)
    assert [epochs.restore(*batch) for batch in ((2, 0), (4, 12), (7, 30))] == [10, 30, 2**63 - 1]
    epochs.restore(-1, 40)
    assert (epochs.entries, epochs.is_dirty) == (before, False)
    assert epochs.restore(4, 31) == 2**63 - 1, "7 was truncated"
    assert epochs.entries == before[:2]
    epochs.restore(5, 40)
    assert epochs.entries == [*before[:2], EpochStart(5, 40)]
    assert epochs.is_dirty


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
    write(epochs)
    assert LeaderEpochs(str(tmp_path)).entries == [EpochStart(4, 15)]
    epochs.clear()
    write(epochs)
    assert LeaderEpochs(str(tmp_path)).entries == []
    assert epochs.latest == -1
    assert epochs.end_of(0, 5) == (-1, -1)


def test_a_damaged_file_counts_as_missing(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("0\n1\nx y\n")
    epochs = LeaderEpochs(str(tmp_path))
    assert epochs.entries == []
    epochs.assign(1, 0)
    write(epochs)
    assert LeaderEpochs(str(tmp_path)).latest == 1
