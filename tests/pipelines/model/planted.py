"""Bugs to plant in the pipelines: walks through a world must find each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.pipelines.model.walk import walk
from tests.pipelines.model.world import ModelLease, SilentError

from ottla.pipelines.identity import changes
from ottla.pipelines.identity import next_batch as rule
from ottla.pipelines.identity.next_batch import Answer, Held, Planned, Refuse, Skip, Write
from ottla.pipelines.run import batch, begin, plan, start, starting
from ottla.pipelines.sinks import delta, jdbc

Plant = Callable[[pytest.MonkeyPatch], None]


def first_seed(plant: Plant, patch: pytest.MonkeyPatch, kind: str, below: int) -> int:
    """Return the first seed whose walk finds the bug, -1 if none does."""
    plant(patch)
    for seed in range(below):
        try:
            walk(seed, kind, "exactly-once")
        except SilentError:
            return seed
    return -1


def _decide(change: Callable[[Planned, Held], tuple[Planned, Held]]) -> Any:
    def decide(planned: Planned, held: Held) -> Answer:
        return rule.decide(*change(planned, held))

    return decide


def no_check_of_the_age(patch: pytest.MonkeyPatch) -> None:
    """A checkpoint that is older than its target goes on."""

    def decide(planned: Planned, held: Held) -> Answer:
        answer = rule.decide(planned, held)
        return Write() if isinstance(answer, Refuse) and held.batch is not None else answer

    patch.setattr(plan, "decide", decide)


def no_comparison_of_a_skipped_batch(patch: pytest.MonkeyPatch) -> None:
    """A batch that the target skips is taken for the one of the checkpoint."""
    patch.setattr(batch, "decide", lambda planned, held: Skip())


def ends_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    """Batches are compared by their numbers alone, at the start and where they are skipped."""
    forget = _decide(lambda planned, held: (planned, replace(held, ends=None)))
    patch.setattr(plan, "decide", forget)
    patch.setattr(batch, "decide", forget)


def no_check_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A query that starts again in its process goes on, whatever became of its target."""
    patch.setattr(start, "check_again", lambda *_: None)


def no_lease(patch: pytest.MonkeyPatch) -> None:
    """Two runs use one checkpoint at the same time."""

    class NoLease(ModelLease):
        def check(self, *, watch_s: float = 0.0) -> None: ...

        def renew(self) -> str | None:
            return None

    patch.setattr(begin, "Lease", NoLease)


def no_check_of_what_is_promised(patch: pytest.MonkeyPatch) -> None:
    """A target that was set back is written on."""
    patch.setattr(
        plan, "decide", _decide(lambda planned, held: (replace(planned, promised=None), held))
    )


def restores_are_not_seen(patch: pytest.MonkeyPatch) -> None:
    """What RESTORE TABLE took out counts as held."""
    patch.setattr(delta, "still_held", iter)


def queries_are_not_known_as_continued(patch: pytest.MonkeyPatch) -> None:
    """A former checkpoint goes on beside the one that continues it."""
    forget = _decide(lambda planned, held: (planned, replace(held, continued_by="")))
    patch.setattr(plan, "decide", forget)
    patch.setattr(jdbc, "decide", forget)


def lost_records_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    """A topic that was made again is read on."""
    patch.setattr(changes, "losses", lambda *_: [])
    patch.setattr(starting, "losses", lambda *_: [])


PLANTED: Final[tuple[tuple[str, Plant], ...]] = (
    ("delta", no_check_of_the_age),
    ("postgresql", no_check_of_the_age),
    ("files", no_check_of_the_age),
    ("delta", no_comparison_of_a_skipped_batch),
    ("postgresql", no_comparison_of_a_skipped_batch),
    ("files", no_comparison_of_a_skipped_batch),
    ("delta", ends_are_not_compared),
    ("postgresql", ends_are_not_compared),
    ("files", no_check_at_a_restart),
    ("delta", no_lease),
    ("postgresql", no_check_of_what_is_promised),
    ("files", no_check_of_what_is_promised),
    ("delta", restores_are_not_seen),
    ("postgresql", queries_are_not_known_as_continued),
    ("delta", lost_records_are_not_counted),
)
