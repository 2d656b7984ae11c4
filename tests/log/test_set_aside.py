import os
from pathlib import Path

import pytest

from ottla.log.set_aside import free_path, make_way


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    path = str(tmp_path / "a.cut")
    assert free_path(path) == path
    for taken, free in ((path, f"{path}-2"), (f"{path}-2", f"{path}-3")):
        Path(taken).touch()
        assert free_path(path) == free


def test_a_file_that_can_be_written_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_way(str(tmp_path / "none"))
    (tmp_path / "file").write_text("x")
    make_way(str(tmp_path / "file"))
    assert ([each.name for each in tmp_path.iterdir()], caplog.messages) == (["file"], [])


def test_a_folder_and_a_file_without_permission_are_renamed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0.index"
    for _ in range(2):
        path.mkdir()
        make_way(str(path))
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "0.index.damaged",
        "0.index.damaged-2",
    ]
    path.write_text("x")

    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refused)
    make_way(str(path))
    assert caplog.messages[-1] == (
        f"cannot use {path} (Permission denied): it is now {path}.damaged-3"
    )
    assert not path.exists()
