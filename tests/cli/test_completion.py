"""`--install-completion` and `--show-completion`: a shell that ottla knows learns to complete."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ottla.cli import completion
from ottla.cli.main import main

FILES = {
    "bash": (".bash_completions/ottla.sh", ".bashrc"),
    "zsh": (".zfunc/_ottla", ".zshrc"),
    "fish": (".config/fish/completions/ottla.fish", None),
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    # The tests' own parent may be any program, also a shell.
    monkeypatch.setattr(os, "getppid", lambda: 0)
    return tmp_path


@pytest.mark.parametrize("shell", FILES)
def test_the_script_is_installed_once(
    shell: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    script, start = FILES[shell]
    if start is not None:
        (home / start).write_text("alias l=ls\n")
    for _ in range(2):
        assert main(["--install-completion"]) == 0
    assert str(home / script) in capsys.readouterr().out
    assert f"{completion.COMPLETION_VARIABLE}={shell}_complete" in (home / script).read_text()
    if start is not None:
        lines = (home / start).read_text().splitlines()
        assert lines[0] == "alias l=ls"
        assert len([line for line in lines if "ompletion" in line or "compinit" in line]) == 1
    assert main(["--show-completion"]) == 0
    assert capsys.readouterr().out == (home / script).read_text()


def test_the_script_of_bash_is_one_that_bash_reads(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/bash")
    assert main(["--install-completion"]) == 0
    known = f"source {home}/.bash_completions/ottla.sh; complete -p ottla"
    done = subprocess.run(["bash", "-c", known], capture_output=True, text=True)
    assert "_ottla_completion" in done.stdout, done.stderr


def test_another_shell_fails_with_the_names_of_those_that_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", "/bin/dash")
    assert main(["--install-completion"]) == 1
    assert "no completion for dash, only for bash, zsh, fish" in capsys.readouterr().err
