"""Steps that wait: a limit, and windows that widen before it is reached."""

from ottla.timelines.pending_steps import BACKLOG_STEPS, MAX_STEPS, WINDOW_MS, Gathering
from ottla.timelines.step import Kind, Step

STEP = Step(Kind.HIGH, None, 1, 1, 0, 1, 1)


def test_beyond_the_limit_steps_are_counted_and_not_kept() -> None:
    dirty: dict[Gathering, None] = {}
    gathering = Gathering(dirty)
    assert not dirty
    for _ in range(MAX_STEPS + 3):
        gathering._add(STEP)
    assert list(dirty) == [gathering]
    assert gathering.unnoted == 3


def test_a_backlog_widens_the_windows() -> None:
    gathering = Gathering({})
    assert gathering._window_ms() == WINDOW_MS
    for _ in range(BACKLOG_STEPS):
        gathering._add(STEP)
    assert gathering._window_ms() == 2 * WINDOW_MS
