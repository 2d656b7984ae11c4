import os
from pathlib import Path

import pytest

from ottla.log.checkpoint import parse_offsets, read_lines, write_lines, write_offsets
from ottla.log.errors import SyncError
from ottla.protocol.errors import ApiError, ErrorCode


def test_the_file_is_kafkas(tmp_path: Path) -> None:
    path = tmp_path / "recovery-point-offset-checkpoint"
    write_offsets(str(path), {("flights", 0): 4711, ("a-b.c_d", 12): 9})
    *lines, last = path.read_text().splitlines()
    assert lines == ["0", "3", "flights 0 4711", "a-b.c_d 12 9"]
    # To Kafka a partition that it does not have.
    assert last.startswith("#checksum 0 ")
    offsets = {("flights", 0): 4711, ("a-b.c_d", 12): 9}
    assert parse_offsets(path.read_bytes(), path.name) == (offsets, True)


def test_kafkas_own_file_has_no_checksum() -> None:
    content = b"0\n2\nflights 0 4711\na-b.c_d 12 9\n"
    offsets = {("flights", 0): 4711, ("a-b.c_d", 12): 9}
    assert parse_offsets(content, "any") == (offsets, False)


def test_no_changed_byte_goes_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    write_offsets(str(path), {("flights", 0): 4711, ("a-b.c_d", 12): 9})
    right = path.read_bytes()
    for position in range(len(right)):
        for bit in range(8):
            content = bytearray(right)
            content[position] ^= 1 << bit
            try:
                found = parse_offsets(bytes(content), path.name)
            except ValueError:
                continue
            # A change of white space, or of the word before the checksum.
            assert found == parse_offsets(right, path.name) or not found.is_proven


def test_another_files_content_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "replication-offset-checkpoint"
    write_offsets(str(path), {("flights", 0): 4711})
    with pytest.raises(ValueError, match="its checksum is wrong"):
        parse_offsets(path.read_bytes(), "recovery-point-offset-checkpoint")


def test_a_missing_file_has_no_entries(tmp_path: Path) -> None:
    assert read_lines(str(tmp_path / "none")) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0\n",
        "1\n0\n",
        "0\nx\n",
        "0\n2\nt 0 1\n",
        "0\n1\nt 0\n",
        "0\n1\nt zero 1\n",
        "0\n1\nt 0 -1\n",
    ],
)
def test_a_damaged_file_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(text)
    with pytest.raises(ValueError, match="it "):
        parse_offsets(path.read_bytes(), path.name)


def test_leftovers_of_a_crash_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_lines(str(path), ["a b"])
    (tmp_path / "c.tmp").write_text("0\n9\nhalf")
    assert read_lines(str(path)) == [["a", "b"]]
    write_lines(str(path), ["c d"])
    assert read_lines(str(path)) == [["c", "d"]]


def test_a_folder_that_is_gone_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(ApiError) as caught:
        write_lines(str(tmp_path / "gone" / "c"), [])
    assert caught.value.code is ErrorCode.kafka_storage_error
    assert "No such file" in str(caught.value)


def test_a_failed_sync_is_told_apart_from_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    path = tmp_path / "offsets"
    write_offsets(str(path), {("t", 0): 1})
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SyncError, match="Input/output error"):
        write_offsets(str(path), {("t", 0): 2})
    assert parse_offsets(path.read_bytes(), path.name).by_partition == {("t", 0): 1}
