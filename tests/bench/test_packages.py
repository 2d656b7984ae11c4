import sys
import tarfile
from pathlib import Path

import pytest

from bench import packages


def test_a_failing_step_tells_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('cc: no input'); raise SystemExit(2)"]
    with pytest.raises(packages.PackageError, match=r"ended with 2:\ncc: no input"):
        packages.run(command, tmp_path)


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(packages.PackageError, match="no-such-program is not installed"):
        packages.run(["no-such-program"], tmp_path)


def test_an_archive_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "file", "package/file")
    packages.unpack(tmp_path / "a.tar.gz", tmp_path / "out")
    assert (tmp_path / "out" / "package" / "file").read_text() == "text"


def test_who_is_not_root_is_told_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "missing_debian_packages", lambda names: list(names))
    monkeypatch.setattr(packages.os, "geteuid", lambda: 1000)
    with pytest.raises(packages.PackageError, match="sudo apt-get install -y libssl-dev"):
        packages.need_debian_packages(["libssl-dev"])


def test_nothing_missing_is_nothing_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)
    assert packages.missing_debian_packages(["libssl-dev"]) == []
    packages.need_debian_packages(["libssl-dev"])
