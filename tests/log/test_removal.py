from pathlib import Path

import pytest

from ottla.log.removal import Removal


def test_files_and_folders_go_and_what_is_gone_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    (tmp_path / "folder" / "f").write_bytes(b"1")
    (tmp_path / "file").write_bytes(b"1")
    removal = Removal(tuple(str(tmp_path / name) for name in ("folder", "file", "none")), 0)
    removal.run()
    removal.run()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_deleted_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It takes room on the disk, and nothing else reports it."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()

    def fail(path: object, *_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("os.rmdir", fail)
    Removal((str(tmp_path / "folder"), str(tmp_path / "file")), 0).run()
    assert caplog.messages == [
        f"cannot delete {tmp_path / 'folder'}: Read-only file system; the next start tries again"
    ]
    assert not (tmp_path / "file").exists()
