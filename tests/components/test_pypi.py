"""What pip is asked for, and its last line where it fails."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from components import pypi


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What pip was asked for; it answers as it does for a name that PyPI does not have."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        failed = "no-such-package" in command
        said = "ERROR: No matching distribution found" if failed else ""
        return subprocess.CompletedProcess(command, int(failed), "", f"one\n{said}\n")

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_a_package_goes_into_the_folder(asked: list[list[str]], tmp_path: Path) -> None:
    pypi.fetch("one==1", tmp_path)
    pypi.fetch("one==1", tmp_path, alone=True)
    assert [command[-3:] for command in asked] == [["--target", str(tmp_path), "one==1"]] * 2
    assert ["--no-deps" in command for command in asked] == [False, True]


@pytest.mark.usefixtures("asked")
def test_a_failure_is_pips_last_line(tmp_path: Path) -> None:
    with pytest.raises(pypi.PypiError, match="fetched from PyPI: ERROR: No matching distribution"):
        pypi.fetch("no-such-package", tmp_path)
