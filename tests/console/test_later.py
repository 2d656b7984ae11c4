"""Pages whose modules are imported when they are asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ottla.console import later
from ottla.console.application import CHANGES, PAGES, RECORD_STREAMS, STREAMS
from ottla.console.later import Later, import_soon, loaded

LATE = {
    path: page
    for table in (PAGES, CHANGES)
    for path, page in table.items()
    if isinstance(page, Later)
}


@pytest.mark.parametrize("path", LATE)
def test_each_page_has_its_function(path: str) -> None:
    assert callable(LATE[path].loaded())


def test_each_stream_has_its_kind() -> None:
    assert set(loaded(RECORD_STREAMS, "KINDS")) == set(STREAMS)


def test_the_first_page_needs_little() -> None:
    """What takes long to import is not imported for it."""
    script = "import sys, ottla.console.server; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    modules = set(done.stdout.split())
    assert "ottla.console.pages.overview" in modules
    late = {"confluent_kafka", RECORD_STREAMS, *(page.module for page in LATE.values())}
    # The overview shares a function with the charts.
    assert modules & late <= {"ottla.console.pages.charts"}


def test_the_rest_comes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(later, "import_module", asked.append)
    monkeypatch.setattr(later, "AFTER_START_S", 0.0)
    thread = import_soon(["a", "b"])
    thread.join(30)
    assert asked == ["a", "b"]
