import os
from pathlib import Path

from ottla.log.file_range import EMPTY, FileRange
from ottla.log.open_file import OpenFile


def test_a_range_is_a_piece_of_a_file_that_stays_open(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    held = FileRange(OpenFile(str(tmp_path / "f")), 0, 3, 4)
    os.unlink(tmp_path / "f")
    assert held.read() == held.read() == b"3456"
    assert os.pread(held.fd, 2, held.position) == b"34"


def test_nothing_is_a_range_too() -> None:
    assert (EMPTY.read(), EMPTY.size_bytes, EMPTY.fd) == (b"", 0, -1)
