"""Deciders broken on purpose: the simulation must find each of them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from simulation.deciders import Deciders
from simulation.faults import Fault, draw_faults
from simulation.world import run

from ottla.controller.broker_changes import brokers_changed
from ottla.controller.image import (
    BrokerAppeared,
    ClusterImage,
    DirectoryChanged,
    PartitionState,
)
from ottla.controller.in_sync_changes import ANY_EPOCH, ProposedIsr, alter_partitions
from ottla.controller.layout import DIRECTORIES
from ottla.replication.follower import Answer, Follower, GoOn, Question, Truncate
from ottla.replication.leader import InSyncChange, Leader

SEEDS = 60


class IgnoresOne(Leader):
    """Its high watermark waits for all in sync but one."""

    __slots__ = ()

    def advance(self, end_offset: int, now_ms: int, min_isr: int) -> bool:
        known = self.maximal_isr
        self.maximal_isr = frozenset(sorted(known)[:-1])
        try:
            return super().advance(end_offset, now_ms, min_isr)
        finally:
            self.maximal_isr = known


class WaitsForNobody(Leader):
    """Its high watermark is its log's end."""

    __slots__ = ()

    def advance(self, end_offset: int, now_ms: int, min_isr: int) -> bool:
        moved = end_offset > self.high_watermark
        self.high_watermark = max(end_offset, self.high_watermark)
        return moved


class ForgetsMaximal(Leader):
    """It takes a proposal for granted: who is left out is not waited for any more."""

    __slots__ = ()

    def in_sync_change(self, end_offset: int, now_ms: int) -> InSyncChange | None:
        change = super().in_sync_change(end_offset, now_ms)
        if change is not None:
            self.maximal_isr = frozenset(broker for broker, _ in change.isr)
        return change


class JoinsEarly(Leader):
    """Whoever lives may join the in-sync replicas, however far behind."""

    __slots__ = ()

    def may_join(self, broker_id: int) -> bool:
        return self.in_flight is None and broker_id not in self.state.isr


class NeverTruncates(Follower):
    """It keeps what its leader does not have."""

    __slots__ = ()

    def answered(self, asked: Question, answer: Answer, log: Any) -> Any:
        decision = super().answered(asked, answer, log)
        return GoOn() if isinstance(decision, Truncate) else decision


def elects_anybody(live: Any, image: ClusterImage, config: Any, **rest: Any) -> Any:
    """As if every replica were in sync."""
    for topic in list(image.topics.values()):
        states = tuple(
            each._replace(isr=each.replicas) if each.leader not in live else each
            for each in topic.partitions
        )
        image.topics[topic.name] = replace(topic, partitions=states)
    return brokers_changed(live, image, config, **rest)


def forgets_disks(live: Any, image: ClusterImage, config: Any, **rest: Any) -> Any:
    """A lost disk is put down, and has no consequence."""
    blind = {number: replace(broker, directory_id=None) for number, broker in live.items()}
    plan = brokers_changed(blind, image, config, **rest)
    right = brokers_changed(live, image, config, **rest)
    noted = tuple(each for each in right.writes if each.path.startswith(DIRECTORIES))
    told = tuple(
        each for each in right.deltas if isinstance(each, BrokerAppeared | DirectoryChanged)
    )
    others = tuple(each for each in plan.deltas if not isinstance(each, BrokerAppeared))
    return replace(plan, writes=plan.writes + noted, deltas=others + told)


def keeps_the_dead_in_sync(live: Any, image: ClusterImage, config: Any, **rest: Any) -> Any:
    """Elections happen, and no delta of them: a deposed leader is led to believe in itself."""
    plan = brokers_changed(live, image, config, **rest)
    return replace(plan, deltas=())


def forgets_versions(
    broker: int,
    epoch: int,
    proposals: Sequence[ProposedIsr],
    image: ClusterImage,
    *rest: Any,
    **by: Any,
) -> Any:
    """No compare-and-set: whatever a proposal builds on, it is taken."""
    now = []
    for each in proposals:
        topic = image.topic_by_id(each.topic_id)
        if topic is not None and each.partition < len(topic.partitions):
            at = topic.partitions[each.partition].partition_epoch
            now.append(each._replace(partition_epoch=at))
        else:
            now.append(each)
    return alter_partitions(broker, epoch, now, image, *rest, **by)


def forgets_lives(
    broker: int, epoch: int, proposals: Sequence[ProposedIsr], *rest: Any, **by: Any
) -> Any:
    """A broker is a broker, whichever life of it was meant (without KIP-903)."""
    anybody = [
        each._replace(isr=tuple((number, ANY_EPOCH) for number, _ in each.isr))
        for each in proposals
    ]
    return alter_partitions(broker, epoch, anybody, *rest, **by)


def believes_anything(state: PartitionState, *rest: Any) -> PartitionState:
    """A broker leads by what is told of its former life."""
    return state


MUTANTS: dict[str, Callable[[], Deciders]] = {
    "high watermark ignores one": lambda: Deciders(leader=IgnoresOne),
    "high watermark ignores all": lambda: Deciders(leader=WaitsForNobody),
    "maximal set ignored": lambda: Deciders(leader=ForgetsMaximal),
    "joins early": lambda: Deciders(leader=JoinsEarly),
    "never truncates": lambda: Deciders(follower=NeverTruncates),
    "elects out of the in-sync set": lambda: Deciders(brokers_changed=elects_anybody),
    "lost disk forgotten": lambda: Deciders(brokers_changed=forgets_disks),
    "no compare-and-set": lambda: Deciders(alter_partitions=forgets_versions),
    "no broker epochs": lambda: Deciders(alter_partitions=forgets_lives),
    "former life believed": lambda: Deciders(in_this_life=believes_anything),
    "no delta": lambda: Deciders(brokers_changed=keeps_the_dead_in_sync),
}


def faults(name: str, seed: int) -> tuple[Fault, ...] | None:
    """A lost disk matters when all in-sync replicas die together: rare, unless nothing else is."""
    if name != "lost disk forgotten":
        return None
    return draw_faults(Random(seed), 3, ("crash", "lose disk"))


@pytest.mark.parametrize("name", MUTANTS)
def test_is_found_out(name: str) -> None:
    deciders = MUTANTS[name]()
    outcomes = (run(seed, faults(name, seed), deciders) for seed in range(SEEDS))
    assert any(outcome.violation for outcome in outcomes), name


STORIES: dict[str, tuple[str, int, tuple[Fault, ...]]] = {
    # Seed 546 of the first generator of faults: a broker with an empty disk led on in its old
    # epoch, and the latest offset went back.
    "an empty disk leads": (
        "former life believed",
        16,
        (Fault(5067, "lose disk", 2, 3, 51, 0),),
    ),
    # Seed 538 of that: the same, and consumers read what was never committed.
    "other records are committed": (
        "former life believed",
        17,
        (
            Fault(2932, "cut tree", 2, 1, 155, 0),
            Fault(9889, "crash", 3, 2, 364, 0),
            Fault(10435, "leave", 1, 2, 2660, 0),
            Fault(11796, "lose disk", 2, 1, 286, 0),
        ),
    ),
    "joins with an empty disk": ("no broker epochs", 1, (Fault(5000, "hold up", 2, 1, 100, 2),)),
    "joins though it lags": ("no compare-and-set", 1, (Fault(5000, "hold up", 2, 1, 100, 1),)),
}
"""A mutant, and a seed and faults that show what it breaks. Where the world's chance has changed so
much that the mutant gets through, `test_is_found_out` and `shrink` find another story.
"""


@pytest.mark.parametrize("name", STORIES)
def test_a_story_ends_well_but_for_its_mutant(name: str) -> None:
    mutant, seed, story = STORIES[name]
    assert run(seed, story).violation is None
    assert run(seed, story, MUTANTS[mutant]()).violation is not None
