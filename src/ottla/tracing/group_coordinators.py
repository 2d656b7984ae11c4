"""Asks the group coordinators of the cluster for what they keep about a partition's groups.

A group is coordinated by the leader of its partition of `__consumer_offsets`, whichever partitions
the group reads. So the broker that explains a message asks every broker, in parallel. What it joins
is complete if every partition of `__consumer_offsets` was answered for; else the journey names the
brokers that should have answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final, NamedTuple, Protocol, TypeAlias

from ottla.controller.image import NO_LEADER, ClusterImage
from ottla.journey.facts import KnownGroups, Position
from ottla.network.peer import PeerError
from ottla.network.peers import Peers
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.protocol.versions import JOURNEY_GROUPS
from ottla.timelines.step import Step
from ottla.tracing.group_answer import (
    VERSION,
    Coordinator,
    GroupsOfPartition,
    joined_steps,
    own_groups,
    read_answer,
)

ANSWER_WITHIN_MS: Final = 900
PURPOSE: Final = "journey-groups"
MAX_TIMES_ASKED: Final = 3
"""While coordinators move from one broker that has answered to another one."""
ASK_AGAIN_AFTER_MS: Final = 50


class FoundGroups(NamedTuple):
    """What all brokers keep about a partition's groups."""

    positions: dict[str, Position]
    steps: tuple[Step, ...]
    known: KnownGroups
    share_groups: tuple[str, ...] = ()


FindGroups: TypeAlias = Callable[[int], Awaitable[FoundGroups]]
"""Takes an offset of the partition."""
FindSteps: TypeAlias = Callable[[int, Collection[int]], Awaitable[tuple[Step, ...]]]
"""Takes an offset of the partition, and the brokers to ask."""


class AskingBroker(Coordinator, Protocol):
    """A coordinator, and the way to the others."""

    peers: Peers


async def find_groups(topic: str, partition: int, offset: int, broker: AskingBroker) -> FoundGroups:
    """The positions of every group in the partition, and the steps that other brokers recorded."""
    loop = asyncio.get_running_loop()
    until = loop.time() + ANSWER_WITHIN_MS / 1000
    answers: dict[int, GroupsOfPartition] = {}
    asked = {broker.config.id, *broker.image.brokers}
    for _ in range(MAX_TIMES_ASKED):
        within_ms = max(int((until - loop.time()) * 1000), 0)
        answers |= await _ask(asked, topic, partition, offset, broker, within_ms)
        # A broker that has not answered for all that it coordinates by now is asked again.
        asked = {leader for leader in missing_leaders(answers, broker.image) if leader in answers}
        if not asked or loop.time() + ASK_AGAIN_AFTER_MS / 1000 >= until:
            break
        await asyncio.sleep(ASK_AGAIN_AFTER_MS / 1000)
    positions: dict[str, Position] = {}
    for answer in answers.values():
        for group, position in answer.positions.items():
            # Of a group that moved meanwhile two brokers told.
            before = positions.get(group)
            if before is None or (before.committed_ms or 0) <= (position.committed_ms or 0):
                positions[group] = position
    missing = missing_leaders(answers, broker.image)
    known = KnownGroups(
        tuple(sorted(set(missing) - {NO_LEADER})),
        missing.count(NO_LEADER),
        sum(answer.left_out for answer in answers.values()),
    )
    shared = sorted({group for answer in answers.values() for group in answer.share_groups})
    return FoundGroups(positions, joined_steps(answers.values()), known, tuple(shared))


async def steps_of_some(
    topic: str, partition: int, offset: int, asked: Collection[int], broker: AskingBroker
) -> tuple[Step, ...]:
    """What these brokers recorded, without those that do not answer."""
    known = set(asked) & {broker.config.id, *broker.image.brokers}
    answers = await _ask(known, topic, partition, offset, broker, ANSWER_WITHIN_MS)
    return joined_steps(answers.values())


def missing_leaders(answers: dict[int, GroupsOfPartition], image: ClusterImage) -> list[int]:
    """The leader of each partition of `__consumer_offsets` for which no broker has answered."""
    topic = image.topic(OFFSETS_TOPIC)
    if topic is None:
        return []
    known = frozenset().union(*(answer.shards for answer in answers.values()))
    return [state.leader for index, state in enumerate(topic.partitions) if index not in known]


async def _ask(
    brokers: Iterable[int],
    topic: str,
    partition: int,
    offset: int,
    broker: AskingBroker,
    within_ms: int,
) -> dict[int, GroupsOfPartition]:
    asked = sorted(brokers)
    own = broker.config.id
    found = await asyncio.gather(
        *(
            own_groups(topic, partition, offset, broker, with_replica=False)
            if number == own
            else _of_another(number, topic, partition, offset, broker.peers, within_ms)
            for number in asked
        )
    )
    return {
        number: answer for number, answer in zip(asked, found, strict=True) if answer is not None
    }


async def _of_another(
    number: int, topic: str, partition: int, offset: int, peers: Peers, within_ms: int
) -> GroupsOfPartition | None:
    request = {
        "journey_groups": VERSION,
        "topic": topic,
        "partition": partition,
        "offset": offset,
    }
    try:
        answer = await peers.peer(number, PURPOSE).ask_json(JOURNEY_GROUPS, request, within_ms)
        return await asyncio.to_thread(read_answer, answer, number)
    except (PeerError, ValueError):
        return None
