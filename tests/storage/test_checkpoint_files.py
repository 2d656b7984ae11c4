"""A damaged checkpoint file is one line, and no reason to refuse the start."""

import logging
from pathlib import Path

import crc32c
import pytest

from ottla.log.checkpoint import write_offsets
from ottla.log.errors import DataFolderError
from ottla.storage.checkpoint_files import (
    ALL_FILES,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    CheckpointFiles,
)
from ottla.storage.clean_stop import CleanStop

TEXT = b"0\n2\nflights 0 4711\nflights 1 9\n"
OFFSETS = {("flights", 0): 4711, ("flights", 1): 9}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ALL_FILES:
        (tmp_path / name).write_bytes(TEXT)
    return tmp_path


def _stop() -> CleanStop:
    return CleanStop(dict.fromkeys(ALL_FILES, crc32c.crc32c(TEXT)))


@pytest.mark.parametrize("stop", [None, CleanStop(), _stop()])
def test_sound_files_say_nothing(
    folder: Path, caplog: pytest.LogCaptureFixture, stop: CleanStop | None
) -> None:
    files = CheckpointFiles(str(folder), stop)
    assert [files[name] for name in ALL_FILES] == [OFFSETS] * 4
    assert (files.damaged, caplog.messages) == (set(), [])
    assert not files.is_proven(RECOVERY_POINTS)


def test_our_own_files_are_proven(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ALL_FILES:
        write_offsets(f"{tmp_path}/{name}", OFFSETS)
    files = CheckpointFiles(str(tmp_path), None)
    assert all(files[name] == OFFSETS and files.is_proven(name) for name in ALL_FILES)
    content = (tmp_path / LOG_STARTS).read_bytes().replace(b"4711", b"4710")
    (tmp_path / LOG_STARTS).write_bytes(content)
    assert CheckpointFiles(str(tmp_path), None)[LOG_STARTS] == {}
    assert "its checksum is wrong" in caplog.text


def test_a_new_folder_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = CheckpointFiles(str(tmp_path), None)
    assert [files[name] for name in ALL_FILES] == [{}] * 4
    assert (files.damaged, caplog.messages) == (set(), [])


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("content", [b"", b"0\n", b"\0" * 30, TEXT + b"x", b"\xff\xfe", None])
@pytest.mark.parametrize("name", ALL_FILES)
def test_a_damaged_file_is_one_line(
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    name: str,
    content: bytes | None,
    is_clean: bool,
) -> None:
    if content is None:
        (folder / name).unlink()
        if name == CLEANER_OFFSETS and not is_clean:
            return
    else:
        (folder / name).write_bytes(content)
    files = CheckpointFiles(str(folder), _stop() if is_clean else None)
    assert {each: files[each] for each in ALL_FILES} == dict.fromkeys(ALL_FILES, OFFSETS) | {
        name: {}
    }
    assert files.damaged == {name}
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.message.startswith(f"{folder}/{name} is damaged (it ")


@pytest.mark.parametrize("bit", range(8))
def test_one_wrong_digit_is_noticed_after_a_clean_stop(
    folder: Path, caplog: pytest.LogCaptureFixture, bit: int
) -> None:
    """It still parses; Kafka would take it."""
    content = bytearray(TEXT)
    content[TEXT.index(b"4711")] ^= 1 << bit
    (folder / LOG_STARTS).write_bytes(content)
    files = CheckpointFiles(str(folder), _stop())
    assert files[LOG_STARTS] == {}
    assert "it is not as the last stop has written it" in caplog.text
    assert "each log begins with its first segment" in caplog.text


@pytest.mark.parametrize("name", [CLEANER_OFFSETS])
def test_kafka_has_no_file_before_the_first_cleaning(
    folder: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    (folder / name).unlink()
    assert CheckpointFiles(str(folder), None)[name] == {}
    assert caplog.messages == []


def test_a_broker_killed_in_its_first_minute_has_only_high_watermarks(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in set(ALL_FILES) - {HIGH_WATERMARKS}:
        (folder / name).unlink()
    assert CheckpointFiles(str(folder), None)[HIGH_WATERMARKS] == OFFSETS
    assert caplog.messages == []


def test_a_file_that_cannot_be_read_stops_the_start_with_its_name(folder: Path) -> None:
    (folder / LOG_STARTS).unlink()
    (folder / LOG_STARTS).mkdir()
    with pytest.raises(DataFolderError) as caught:
        CheckpointFiles(str(folder), None)
    assert str(caught.value) == (
        f"cannot read {folder}/{LOG_STARTS}: Is a directory; make it readable, or remove it: then"
        " each log begins with its first segment, so records deleted before may be read again"
        " until retention removes them"
    )
