"""How a pipeline stands at one moment."""

from dataclasses import replace

from tests.pipelines.program.states import LATEST, SNAPSHOT

from ottla.pipelines.progress.status import Lag


def test_the_mark_changes_with_what_is_worth_a_line() -> None:
    assert replace(SNAPSHOT, lag=Lag(7, 7)).mark == SNAPSHOT.mark
    assert replace(SNAPSHOT, latest=replace(LATEST, batch=8)).mark != SNAPSHOT.mark
    assert replace(SNAPSHOT, failure="x").mark != SNAPSHOT.mark
