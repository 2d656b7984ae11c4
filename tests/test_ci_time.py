"""CI's slow tests end in time, and each commit leaves out others."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.ci_time import FIRST, NO_TIME, UNTIL

pytest_plugins = ("pytester",)

TESTS = "def test_one(): pass\ndef test_two(): pass\n"


def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What pytest prints of the tests of three files."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makepyfile(test_a=TESTS, test_b=TESTS, test_c=TESTS)
    return pytester.runpytest_subprocess("-p", "tests.ci_time", "-v", "-rs").outlines


def test_the_chosen_file_comes_first(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FIRST, "7")  # the second of three
    names = [line[:6] for line in run(pytester, monkeypatch) if " PASSED " in line]
    assert names == ["test_b", "test_b", "test_c", "test_c", "test_a", "test_a"]


@pytest.mark.parametrize(("after_s", "ended"), [(60, "6 passed"), (-1, "6 skipped")])
def test_nothing_begins_after_the_end(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, after_s: int, ended: str
) -> None:
    monkeypatch.setenv(UNTIL, str(time.time() + after_s))
    lines = run(pytester, monkeypatch)
    assert ended in lines[-1]
    assert any(NO_TIME in line for line in lines) == ("skipped" in ended)
