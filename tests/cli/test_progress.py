"""A bar for a person who watches, after a moment, and nothing for anybody else."""

import io

import pytest

from ottla.cli import progress
from ottla.cli.progress import Watch


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = io.StringIO()
    monkeypatch.setattr("sys.stderr", errors)
    monkeypatch.setattr(progress, "SILENT_S", 0)
    with Watch("Working", 10, wanted=True) as watch:
        watch.at(5)
    assert errors.getvalue() == ""


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = Terminal()
    monkeypatch.setattr("sys.stderr", errors)
    with Watch("Working", 10, wanted=True) as watch:
        watch.at(10)
    assert errors.getvalue() == ""


@pytest.mark.parametrize("total", [None, 10])
def test_long_work_shows_progress(monkeypatch: pytest.MonkeyPatch, total: int | None) -> None:
    errors = Terminal()
    monkeypatch.setattr("sys.stderr", errors)
    monkeypatch.setattr(progress, "SILENT_S", 0)
    monkeypatch.setattr(progress, "PAUSE_S", 0)
    with Watch("Working", total, wanted=True) as watch:
        watch.at(5, 20)
        watch.at(6, 20)
    assert "Working" in errors.getvalue()
    assert "6/20" in errors.getvalue()
