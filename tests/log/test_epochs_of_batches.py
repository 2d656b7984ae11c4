"""Leader epochs are found again in the batches."""

from pathlib import Path
from typing import Any

import pytest

from ottla.log.epochs_of_batches import agree, epochs_of
from ottla.log.leader_epochs import FILE_NAME, EpochStart
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log

EPOCHS = (0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 3, 5, 5, 5)
EXPECTED = [EpochStart(0, 0), EpochStart(2, 12), EpochStart(3, 36), EpochStart(5, 39)]


@pytest.fixture
def filled(bench: Any) -> Any:
    log = bench.configure(segment_bytes=900).open()
    for epoch in EPOCHS:
        bench.append(log, 3, leader_epoch=epoch)
    assert len(log.segments) > 3
    assert log.epochs.entries == EXPECTED
    bench.log = log
    return bench


def _again(bench: Any, **how: Any) -> Log:
    return open_log(str(bench.folder), bench.config, OpenFiles(8), now_ms=1, **how)


def test_they_are_those_of_the_batches(filled: Any) -> None:
    segments = filled.log.segments
    assert epochs_of(segments) == EXPECTED
    assert agree(EXPECTED, segments, filled.log.end_offset)


@pytest.mark.parametrize(
    "wrong",
    [
        [EpochStart(0, 0), EpochStart(2, 15)],
        [EpochStart(0, 0), EpochStart(1, 12)],
        [EpochStart(0, 0), EpochStart(2, 13)],
        [EpochStart(0, 0), EpochStart(9, 39)],
    ],
)
def test_others_do_not_agree(filled: Any, wrong: list[EpochStart]) -> None:
    segments, end = filled.log.segments, filled.log.end_offset
    assert not agree(wrong, segments, end)


def test_what_the_batches_do_not_contradict_agrees(filled: Any) -> None:
    segments, end = filled.log.segments, filled.log.end_offset
    within = [EpochStart(2, 13), *EXPECTED[2:]]
    assert agree(within, segments, end), "the start may lie within a batch"
    assert agree([*EXPECTED, EpochStart(9, end)], segments, end), "it has no record yet"
    assert agree(EXPECTED[:2], segments, 36), "the rest is recovered"


@pytest.mark.parametrize(
    "content", [b"", b"0\n", b"0\n2\n2 12\n0 0\n", b"0\n1\nx 1\n", b"\xff", bytes(20), None]
)
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_damaged_file_is_replaced(
    filled: Any, caplog: pytest.LogCaptureFixture, content: bytes | None, is_clean: bool
) -> None:
    filled.log.close()
    end, checksum = filled.log.end_offset, filled.log.epochs.checksum
    path: Path = filled.folder / FILE_NAME
    path.unlink(missing_ok=True)
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    how = {"clean": True, "epochs_checksum": checksum} if is_clean else {}
    log = _again(filled, recovery_point=end, **how)
    assert log.epochs.entries == EXPECTED
    assert log.epochs.is_dirty
    assert any(str(path) in line for line in caplog.messages)


def test_one_wrong_digit_is_noticed_after_a_clean_stop(
    filled: Any, caplog: pytest.LogCaptureFixture
) -> None:
    filled.log.close()
    path: Path = filled.folder / FILE_NAME
    path.write_text("0\n4\n0 0\n2 12\n4 36\n5 39\n")
    end, checksum = filled.log.end_offset, filled.log.epochs.checksum
    log = _again(filled, recovery_point=end, clean=True, epochs_checksum=checksum)
    assert log.epochs.entries == EXPECTED
    assert "it is not as the last stop has written it" in caplog.text


def test_recovery_compares_the_file_with_the_batches(filled: Any) -> None:
    filled.log.close()
    (filled.folder / FILE_NAME).write_text("0\n4\n0 0\n2 12\n4 36\n5 39\n")
    assert _again(filled, recovery_point=filled.log.end_offset).epochs.entries == EXPECTED
