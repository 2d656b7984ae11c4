import os
from pathlib import Path

from ottla.log.open_file import OpenFile, OpenFiles


class Owner:
    def __init__(self, path: Path) -> None:
        path.write_bytes(b"0123456789")
        self.path = str(path)


def _is_open(fd: int) -> bool:
    return os.path.exists(f"/proc/self/fd/{fd}")


def test_the_number_of_open_files_is_bounded(tmp_path: Path) -> None:
    files = OpenFiles(3)
    owners = [Owner(tmp_path / str(number)) for number in range(10)]
    for owner in owners:
        assert os.pread(files.of(owner).fd, 4, 0) == b"0123"
    assert len(files) == 3


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    files = OpenFiles(2)
    a, b, c = (Owner(tmp_path / name) for name in "abc")
    kept = files.of(a).fd
    files.of(b)
    files.of(a)
    files.of(c)
    assert files.of(a).fd == kept


def test_a_holder_can_read_what_was_dropped_and_deleted(tmp_path: Path) -> None:
    files = OpenFiles(1)
    owner = Owner(tmp_path / "a")
    held = files.of(owner)
    files.forget(owner)
    os.unlink(owner.path)
    assert os.pread(held.fd, 4, 6) == b"6789"
    fd = held.fd
    del held
    assert not _is_open(fd)


def test_a_file_that_cannot_be_opened_leaves_nothing(tmp_path: Path) -> None:
    try:
        OpenFile(str(tmp_path / "none"))
    except FileNotFoundError:
        return
    raise AssertionError("a missing file was opened")
