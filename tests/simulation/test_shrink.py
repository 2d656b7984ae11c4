"""A failure is told with the faults that it needs, and no more."""

from __future__ import annotations

from simulation.deciders import Deciders
from simulation.shrink import shrink
from simulation.world import run

from ottla.replication.follower import Answer, Follower, GoOn, Question, Truncate


class NeverTruncates(Follower):
    """It keeps what its leader does not have."""

    __slots__ = ()

    def answered(self, asked: Question, answer: Answer, log: object) -> object:  # type: ignore[override]
        decision = super().answered(asked, answer, log)  # type: ignore[arg-type]
        return GoOn() if isinstance(decision, Truncate) else decision


def test_fewer_faults_and_still_a_violation() -> None:
    deciders = Deciders(follower=NeverTruncates)
    failed = next(
        outcome
        for outcome in (run(seed, deciders=deciders) for seed in range(100))
        if outcome.violation is not None and len(outcome.faults) > 4
    )
    shrunk = shrink(failed, lambda faults: run(failed.seed, faults, deciders))
    assert shrunk.violation is not None
    assert len(shrunk.faults) < len(failed.faults)
    assert shrunk.transcript
