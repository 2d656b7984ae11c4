"""The folder for traces and logs: whose it is, and what stays in it."""

import os
import stat
from pathlib import Path

from ottla.pipelines.state_folder import folders, remove_oldest, state_folder


def test_the_folder_is_the_users_and_can_be_chosen() -> None:
    assert list(folders({"OTTLA_STATE_DIR": "/x", "HOME": "/h"})) == [Path("/x")]
    found = list(folders({"XDG_STATE_HOME": "/s", "HOME": "/h"}))
    assert found[:2] == [Path("/s/ottla"), Path("/h/.local/state/ottla")]
    assert found[2].name.startswith("ottla-")


def test_only_its_user_may_read_it(tmp_path: Path) -> None:
    folder = state_folder({"OTTLA_STATE_DIR": str(tmp_path / "state")}, "logs")

    assert folder == tmp_path / "state" / "logs"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_there_is_none_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert state_folder({"OTTLA_STATE_DIR": str(tmp_path / "file")}, "logs") is None


def test_the_newest_files_stay_and_the_parts_of_others_go(tmp_path: Path) -> None:
    for age, name in enumerate(["new", "old", "oldest"]):
        for file in (tmp_path / f"spark-{name}.log", tmp_path / f"spark-{name}.log.1"):
            file.touch()
            os.utime(file, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / "other.log").touch()

    remove_oldest(tmp_path, "spark-*.log", 1)

    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["other.log", "spark-new.log", "spark-new.log.1"]
