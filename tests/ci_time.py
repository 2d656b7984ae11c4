"""An end for the slow tests of CI: who has a slow machine waits no longer than others.

A pytest plugin. `.ci/run` gives two variables to `make test-slow`, and without them nothing
changes: OTTLA_SLOW_UNTIL, in seconds since 1970, after which no test begins but is skipped, and
OTTLA_SLOW_FIRST, a number in hexadecimal digits by which the file is chosen that comes first. That
is the commit, so that each commit leaves out others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Final

import pytest

UNTIL: Final = "OTTLA_SLOW_UNTIL"
FIRST: Final = "OTTLA_SLOW_FIRST"
NO_TIME: Final = "no time left in CI"


@pytest.hookimpl(trylast=True)  # after those that are not slow were taken out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if first := os.environ.get(FIRST):
        items[:] = begun_at(int(first, 16), items)


def begun_at(number: int, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests in their order, but from another file on, and then those before it."""
    files = list(dict.fromkeys(item.path for item in items))
    if not files:
        return []
    chosen = files[number % len(files)]
    start = next(index for index, item in enumerate(items) if item.path == chosen)
    return [*items[start:], *items[:start]]


@pytest.hookimpl(tryfirst=True)  # before the test's fixtures
def pytest_runtest_setup() -> None:
    until = os.environ.get(UNTIL)
    if until and time.time() > float(until):
        pytest.skip(NO_TIME)
