"""Whatever happens around a pipeline, no row is lost, doubled or changed in silence.

Hypothesis chooses what happens; a failure is shrunk to the shortest list of actions.
"""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.pipelines.model.planted import (
    KEEP_REJECTS,
    a_batch_in_two_commits_is_not_seen,
    a_batch_that_was_cut_off_counts_as_compared,
    a_first_batch_trusts_its_start,
    a_query_that_no_commit_shows_is_not_missed,
    what_is_forgotten_is_not_missed,
)
from tests.pipelines.model.rejected import NUMBERS
from tests.pipelines.model.targets import TARGETS
from tests.pipelines.model.walk import CHANGES, CUT_OFF, LENGTH, stopped_start, walk
from tests.pipelines.model.world import (
    CHECKPOINTS,
    KINDS,
    Run,
    SilentError,
    World,
    in_world,
    install,
)

EXAMPLES = 40
STEPS = 50
WALKS = 40
STOPS = 14

checkpoints = st.sampled_from(CHECKPOINTS)
few = st.integers(1, 5)
steps = st.integers(0, 8)


class Machine(RuleBasedStateMachine):
    """A world, and what happens in it."""

    kind = "delta"
    delivery = "exactly-once"

    def __init__(self) -> None:
        super().__init__()
        self._inside: Any = in_world(self.kind, self.delivery)
        self.world: World = self._inside.__enter__()

    def teardown(self) -> None:
        self._inside.__exit__(None, None, None)

    def _runs(self) -> list[Run]:
        return [run for run in self.world.runs if run.runs]

    def _run(self, number: int) -> Run:
        return self._runs()[number % len(self._runs())]

    @initialize(count=few)
    def first_records(self, count: int) -> None:
        self.world.append(0, count)

    @rule(partition=st.integers(0, 2), count=few)
    def append(self, partition: int, count: int) -> None:
        self.world.append(partition, count)

    @rule(
        name=checkpoints,
        starting=st.sampled_from(("earliest", "table")),
        on_lost=st.sampled_from(("stop", "skip")),
    )
    def start(self, name: str, starting: str, on_lost: str) -> None:
        self.world.start(name, starting, on_lost)

    @rule(name=checkpoints, at=steps)
    def start_that_is_killed(self, name: str, at: int) -> None:
        self.world.steps.kill_at = at
        self.world.start(name, "table", "skip")
        self.world.steps.kill_at = -1

    @rule(name=checkpoints, other=checkpoints, at=steps, most=few)
    def start_that_is_overtaken(self, name: str, other: str, at: int, most: int) -> None:
        self.world.steps.meanwhile_at = at
        self.world.steps.meanwhile = lambda: self._cycle(other, most)
        self.world.start(name, "table", "skip")
        self.world.steps.meanwhile_at, self.world.steps.meanwhile = -1, None

    @rule(name=checkpoints, at=steps, most=few)
    def start_that_is_stopped(self, name: str, at: int, most: int) -> None:
        def another() -> None:
            self.world.freeze(name)
            self._cycle(name, most)

        self.world.steps.meanwhile_at, self.world.steps.meanwhile = at, another
        self.world.start(name, "table", "skip")
        self.world.steps.meanwhile_at, self.world.steps.meanwhile = -1, None

    def _cycle(self, name: str, most: int) -> None:
        run = self.world.start(name, "table")
        self.world.batch(run, most)
        self.world.stop(run)

    @precondition(lambda self: self._runs())
    @rule(number=st.integers(0, 3), most=few)
    def batch(self, number: int, most: int) -> None:
        self.world.batch(self._run(number), most)

    @precondition(lambda self: self._runs())
    @rule(number=st.integers(0, 3), most=few, at=steps)
    def batch_that_is_killed(self, number: int, most: int, at: int) -> None:
        self.world.steps.kill_at = at
        self.world.batch(self._run(number), most)
        self.world.steps.kill_at = -1

    @precondition(lambda self: self._runs())
    @rule(number=st.integers(0, 3), name=checkpoints, most=few, at=steps)
    def batch_that_is_overtaken(self, number: int, name: str, most: int, at: int) -> None:
        self.world.steps.meanwhile_at = at
        self.world.steps.meanwhile = lambda: self._cycle(name, most)
        self.world.batch(self._run(number), most)
        self.world.steps.meanwhile_at, self.world.steps.meanwhile = -1, None

    @precondition(lambda self: self._runs())
    @rule(number=st.integers(0, 3))
    def stop(self, number: int) -> None:
        self.world.stop(self._run(number))

    @precondition(lambda self: self._runs())
    @rule(number=st.integers(0, 3))
    def kill(self, number: int) -> None:
        self.world.kill(self._run(number))

    @precondition(lambda self: self._runs())
    @rule(number=st.integers(0, 3))
    def restart(self, number: int) -> None:
        self.world.restart(self._run(number))

    @precondition(lambda self: self._runs())
    @rule(number=st.integers(0, 3), name=checkpoints)
    def lose_the_lease(self, number: int, name: str) -> None:
        self.world.freeze(name)
        self.world.beat(self._run(number))

    @precondition(lambda self: self.kind != "topic")
    @rule(count=few, at=st.integers(-1, 4))
    def replay(self, count: int, at: int) -> None:
        self.world.steps.kill_at = at
        self.world.replay(count)
        self.world.steps.kill_at = -1

    @rule(each=st.sampled_from(NUMBERS))
    def expect(self, each: int | None) -> None:
        self.world.expect(each)

    @rule(of=checkpoints, to=checkpoints)
    def copy_checkpoint(self, of: str, to: str) -> None:
        if of != to and not self.world.running_on(to):
            self.world.copy_checkpoint(of, to)

    @rule(name=checkpoints)
    def back_up_checkpoint(self, name: str) -> None:
        self.world.back_up_checkpoint(name)

    @rule(name=checkpoints)
    def restore_checkpoint(self, name: str) -> None:
        self.world.restore_checkpoint(name)

    @rule(name=checkpoints)
    def forget_checkpoint(self, name: str) -> None:
        if not self.world.running_on(name):
            self.world.forget_checkpoint(name)

    @rule()
    def back_up_target(self) -> None:
        self.world.back_up_target()

    @rule()
    def restore_target(self) -> None:
        self.world.restore_target()

    @rule(version=st.integers(0, 20))
    def restore_table(self, version: int) -> None:
        self.world.restore_table(version)

    @rule()
    def forget_history(self) -> None:
        self.world.forget_history()

    @rule()
    def recreate_target(self) -> None:
        self.world.recreate_target()

    @rule()
    def add_partition(self) -> None:
        self.world.add_partition()

    @rule(count=st.integers(0, 8))
    def recreate_topic(self, count: int) -> None:
        self.world.recreate_topic(count)

    @rule(count=few)
    def retention(self, count: int) -> None:
        self.world.retention(count)


DELIVERIES = ("exactly-once", "at-least-once", "at-most-once")
WITH_KEYS = tuple(kind for kind in KINDS if kind not in TARGETS)


@pytest.mark.parametrize(
    ("kind", "delivery"),
    [
        *((kind, delivery) for kind in TARGETS for delivery in DELIVERIES),
        *((kind, "exactly-once") for kind in WITH_KEYS),
    ],
)
def test_no_row_is_lost_or_doubled_in_silence(
    kind: str, delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    machine = type("Machine", (Machine,), {"kind": kind, "delivery": delivery})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_is_lost_or_doubled_on_a_walk(
    kind: str, delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    for seed in range(WALKS):
        walk(seed, kind, delivery, LENGTH)


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("kind", KEEP_REJECTS)
def test_no_row_is_lost_where_other_rows_are_expected_after_a_kill(
    kind: str, delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    for seed in range(WALKS):
        walk(seed, kind, delivery, LENGTH, CHANGES)


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("kind", TARGETS)
def test_no_row_is_lost_or_doubled_where_runs_are_cut_off_after_a_commit(
    kind: str, delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    for seed in range(WALKS):
        walk(seed, kind, delivery, LENGTH, CUT_OFF)


@pytest.mark.parametrize("kind", KEEP_REJECTS)
def test_each_row_is_in_one_of_both_wherever_a_batch_is_killed(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    for at in range(12):
        with in_world(kind) as world:
            for each in (2, None, 3, 2):
                world.expect(each)
                world.append(0, 5)
                for kill_at in (at, at, -1):
                    world.steps.kill_at = kill_at
                    run = world.start("a")
                    world.batch(run, 9)
                    world.steps.kill_at = -1
                    world.stop(run)
                    world.expect(3 if world.each == 2 else 2)
            both = [*world.held, *world.beside(world.path).rows]
            assert sorted(row[2] for row in both) == list(range(20)), at


FOUND = {
    ("delta", 1): "the former checkpoint went on beside the one that continued the table",
    ("postgresql", 5): "a new query wrote its first batch though its table had grown since",
    ("delta", 313): "of two queries on a restored table the one that wrote in vain did not say so",
    ("delta", 329): "a new query went on after the last batch of one that was continued meanwhile",
    ("delta", 1853): "a copy had written the topic that was created again",
    ("postgresql", 2336): "the former query wrote during the first batch of the one after it",
    ("files", 1267): "a query that came too late left its own note in the folder",
    ("delta", 705): "a run lost its checkpoint while it started, and moved the state of the next",
    ("files", 705): "it wrote the other run's batch again",
    ("delta", 2281): "a first batch that ends before it begins",
    ("files", 20): "a folder was set back while a query wrote to it",
    ("iceberg", 453): "a run that had lost its lease wrote the batch of the next one again",
    ("iceberg", 3192): "what another new query had written was forgotten before the first batch",
    ("delta", 528): "the end of a batch of this number, which a copy had written, was forgotten",
    ("delta", 267): "what a RESTORE took out before the known commits was not in the table",
    ("delta", 1364): "who continued a query while it ran was forgotten before its next batch",
    ("files", 76): "a copy went on beside the query that had moved the former one away",
}


def test_a_new_query_does_not_begin_where_the_snapshots_have_expired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)
    walk(391, "iceberg", "at-most-once", LENGTH)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_first_batch_is_not_written_where_what_another_query_wrote_is_forgotten(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)

    def world() -> World:
        with in_world(kind) as world:
            world.append(0, 2)
            late, early = world.start("a"), world.start("b", "table")
            world.batch(early, 5)
            world.compact()
            world.forget_history()
            world.batch(late, 5)
            return world

    (said,) = world().said
    assert "'t' to the table" in said
    assert "since this one began is not known" in said
    what_is_forgotten_is_not_missed(monkeypatch)
    with pytest.raises(SilentError, match="doubled"):
        world()


def test_a_batch_is_not_skipped_where_the_end_of_its_number_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)
    with in_world("delta") as world:
        world.append(0, 1)
        run = world.start("a")
        world.batch(run, 1)
        world.copy_checkpoint("a", "b")
        world.append(0, 1)
        copy = world.start("b")
        world.batch(copy, 1)
        world.stop(copy)
        world.append(0, 1)
        world.batch(run, 2)
        world.forget_history()
        world.start("a")
        said = world.said
        assert "up to offset 3" in said[0]
        assert "a batch 1 of this query, and whether it is that of the checkpoint" in said[1]


def continued_and_forgotten(world: World) -> Any:
    """Have another query continue the one of checkpoint a, and forget both; returns its run."""
    world.append(0, 2)
    run = world.start("a")
    world.batch(run, 5)
    world.append(0, 2)
    world.batch(world.start("b", "table"), 5)
    world.forget_history()
    return run


@pytest.mark.parametrize("runs", [True, False])
def test_a_query_does_not_go_on_where_the_one_that_continued_it_is_forgotten(
    runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)

    def world() -> World:
        with in_world("delta") as world:
            run = continued_and_forgotten(world)
            world.append(0, 2)
            if not runs:
                world.stop(run)
                run = world.start("a")
            world.batch(run, 5)
            return world

    (said,) = world().said
    assert "only its latest" in said
    assert "which may have continued this query" in said
    assert ("was written before that was noticed" in said) is runs
    a_query_that_no_commit_shows_is_not_missed(monkeypatch)
    with pytest.raises(SilentError, match="doubled"):
        world()


def test_what_is_forgotten_before_a_batch_that_was_cut_off_is_asked_at_the_next_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)

    def world() -> World:
        with in_world("delta") as world:
            run = continued_and_forgotten(world)
            world.batch_cut_off(run, 5, lambda: None)
            assert len(world.held) == 6
            world.start("a")
            return world

    killed, said = world().said
    assert killed == "killed"
    assert "A run was cut off after it had written batch 1" in said
    assert "rows may be there twice" in said
    a_batch_that_was_cut_off_counts_as_compared(monkeypatch)
    with pytest.raises(SilentError, match="before a kill, and a start goes on"):
        world()


def test_a_batch_that_two_runs_wrote_is_said_though_the_second_one_was_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)

    def world() -> World:
        with in_world("iceberg") as world:
            world.append(0, 2)
            late = world.start("a")
            world.batch(late, 5)
            world.append(0, 2)

            def another() -> None:
                world.freeze("a")
                run = world.start("a")
                world.batch(run, 5)
                world.stop(run)

            # Its lease was taken while it wrote, and it is killed before it looks.
            world.steps.meanwhile_at, world.steps.meanwhile = 1, another
            world.batch_cut_off(late, 5, lambda: None)
            world.start("a")
            return world

    killed, said = world().said
    assert killed == "killed"
    assert "has batch 1 of this query in two commits: two runs wrote it" in said
    a_batch_in_two_commits_is_not_seen(monkeypatch)
    with pytest.raises(SilentError, match="before a kill, and a start goes on"):
        world()


@pytest.mark.parametrize("writer", ["an-etl-job", "5f0c8f3a9d1b4c0e8a7b6c5d4e3f2a1b"])
def test_a_quiet_query_goes_on_though_its_commits_are_forgotten(
    writer: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And though a job with a name of its own, or a replay, has written since then."""
    install(monkeypatch)
    with in_world("delta") as world:
        world.append(0, 2)
        run = world.start("a")
        world.batch(run, 5)
        world.stop(run)
        table = world.target.stores[f"file:{world.path}"]
        table.writers[writer] = 7
        table.written_ms[writer] = world.target.now_ms(world.path)
        world.forget_history()
        world.append(0, 2)
        world.batch(world.start("a"), 5)
        assert (world.said, len(world.held)) == ([], 4)
    assert "but no commit says where that ends: only its latest 1 commits" in caplog.text


@pytest.mark.parametrize(("kind", "seed"), FOUND, ids=FOUND.values())
def test_a_walk_that_found_something(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    walk(seed, kind, "exactly-once", LENGTH)


@pytest.mark.parametrize("kind", ["delta", "postgresql", "files"])
def test_a_run_that_lost_its_checkpoint_while_it_started_writes_no_batch(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    worlds = [stopped_start(kind, at) for at in range(STOPS)]
    assert any("was taken while this run started" in said for one in worlds for said in one.said)
    a_first_batch_trusts_its_start(monkeypatch)
    with pytest.raises(SilentError, match="doubled"):
        deque((stopped_start(kind, at) for at in range(STOPS)), maxlen=0)


@pytest.mark.parametrize("kind", ["delta", "iceberg", "postgresql", "files"])
def test_a_replay_that_is_killed_is_ended_after_other_batches(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    for at in range(-1, 4):
        with in_world(kind) as world:
            for count in (3, 2, 4):
                world.append(0, count)
                run = world.start("a")
                world.batch(run, 9)
                world.stop(run)
                world.steps.kill_at = at
                world.replay(2)
                world.steps.kill_at = -1
            world.replay(2)
            assert world.said == []
            assert world.begun is None
            topic = [row for row in world.held if row[0] == world.topic_id]
            assert sorted(row[2] for row in topic) == list(range(9))


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_is_lost_or_doubled_on_many_walks(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    for seed in range(WALKS, 100 * WALKS):
        walk(seed, kind, "exactly-once", LENGTH)


PIPELINES = Path(__file__).parents[1]
PAGE = PIPELINES.parents[1] / "docs" / "guarantees.md"


def test_each_row_names_its_test() -> None:
    rows = re.findall(r"^\|.+\| `(\S+\.py)::(\w+)` \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) > 12
    for file, name in rows:
        assert f"def {name}(" in (PIPELINES / file).read_text(), f"{file}::{name}"
