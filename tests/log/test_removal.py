from pathlib import Path

from ottla.log.removal import Removal


def test_files_and_folders_go_and_what_is_gone_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    (tmp_path / "folder" / "f").write_bytes(b"1")
    (tmp_path / "file").write_bytes(b"1")
    removal = Removal(tuple(str(tmp_path / name) for name in ("folder", "file", "none")), 0)
    removal.run()
    removal.run()
    assert list(tmp_path.iterdir()) == []
