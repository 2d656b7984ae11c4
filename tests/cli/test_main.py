"""Which way a command line goes, and what is true of the process before it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from ottla.cli import app, serve_options
from ottla.cli.completion import COMPLETION_VARIABLE
from ottla.cli.main import main


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls of `run` and `run_command`."""
    taken: list[Any] = []

    def run(options: serve_options.ServeOptions) -> int:
        taken.append(options)
        return 5

    def run_command(words: list[str], *, completing: bool) -> int:
        taken.append((words, completing))
        return 6

    monkeypatch.delenv(COMPLETION_VARIABLE, raising=False)
    monkeypatch.setattr(serve_options, "run", run)
    monkeypatch.setattr(app, "run_command", run_command)
    return taken


def test_a_broker_starts_without_click_if_its_options_are_understood(ways: list[Any]) -> None:
    assert main(["serve", "--id", "7"]) == 5
    assert ways == [serve_options.ServeOptions(node_id="7")]


@pytest.mark.parametrize(
    "words",
    [["serve", "--help"], ["serve", "--ids", "7"], ["topic", "list"], [], ["topic", "serve"]],
)
def test_all_else_is_left_to_click(ways: list[Any], words: list[str]) -> None:
    assert main(words) == 6
    assert ways == [(words, False)]


def test_completion_is_left_to_click(ways: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    assert main(["serve"]) == 6
    assert ways == [(["serve"], True)]


def test_ctrl_c_before_the_command_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(words: list[str], *, completing: bool) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "run_command", interrupted)
    assert main(["topic", "list"]) == 130


def test_asyncio_is_imported_when_it_is_used() -> None:
    code = (
        "import sys; from ottla.cli.main import LoadedWhenUsed;"
        "sys.meta_path.insert(0, LoadedWhenUsed()); import asyncio;"
        "assert 'ssl' not in sys.modules; asyncio.run; assert 'ssl' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_streams_that_are_closed_are_the_null_device(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.setattr("sys.stdout", None)
    assert main(["--version"]) == 0
    assert sys.stdout is not None
    assert (sys.stdin.read(), sys.stdout.name) == ("", os.devnull)
    sys.stdin.close()
    sys.stdout.close()
