"""Which of many failures are logged."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from ottla.runtime.repeated_failure import LOG_AGAIN_MS, RepeatedFailure


def test_the_first_is_logged_and_then_one_line_in_30_s_with_the_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_ms = 0
    clock = SimpleNamespace(monotonic_ms=lambda: now_ms)
    failure = RepeatedFailure(logging.getLogger("part"), logging.WARNING, clock)
    for now_ms in (5, 6, 5 + LOG_AGAIN_MS - 1, 5 + LOG_AGAIN_MS, 4 * LOG_AGAIN_MS):
        failure.log("cannot write %s: %d", "t-0", now_ms)
    assert [(each.name, each.levelname, each.message) for each in caplog.records] == [
        ("part", "WARNING", "cannot write t-0: 5"),
        ("part", "WARNING", "cannot write t-0: 30005 (2 more since the last such line)"),
        ("part", "WARNING", "cannot write t-0: 120000"),
    ]
