"""Electing leaders: by request (ElectLeaders; KIP-183, KIP-460), and who may lead at all.

A new leader gets the next leader epoch, so that what the former one still writes is told apart.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from ottla.controller import layout
from ottla.controller.coordination import SetData
from ottla.controller.image import (
    NO_LEADER,
    ClusterImage,
    PartitionsChanged,
    PartitionState,
    TopicImage,
)
from ottla.controller.plan import DONE, Draft, Outcome, Plan
from ottla.protocol.errors import ErrorCode


class ElectionType(enum.IntEnum):
    """As numbered in ElectLeaders requests."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    kind: ElectionType, wanted: Mapping[str, Sequence[int]] | None, image: ClusterImage
) -> Plan[dict[str, dict[int, Outcome]]]:
    """Give each named partition the leader that it should have.

    `wanted` None means every partition; those that need no election are then left out of the
    reply, as Kafka does it.
    """
    draft = Draft()
    reply: dict[str, dict[int, Outcome]] = {}
    names = {name: range(len(topic.partitions)) for name, topic in image.topics.items()}
    for name, partitions in (names if wanted is None else wanted).items():
        topic = image.topic(name)
        outcomes: dict[int, Outcome] = {}
        changed: dict[int, PartitionState] = {}
        for partition in partitions:
            if partition in outcomes:
                continue
            outcome, state = _elect(kind, name, topic, partition, image)
            outcomes[partition] = outcome
            if state is not None:
                changed[partition] = state
        if topic is not None and changed:
            _write(draft, topic, changed, image.controller_epoch)
        if wanted is None:
            outcomes = {
                partition: outcome
                for partition, outcome in outcomes.items()
                if outcome.code is not ErrorCode.election_not_needed
            }
        reply[name] = outcomes
    return draft.plan(reply)


def next_leader(state: PartitionState, alive: Sequence[int], *, unclean: bool) -> int:
    """The first live in-sync replica in assignment order; else, unclean, the first live one."""
    for broker in state.replicas:
        if broker in alive and broker in state.isr:
            return broker
    if unclean:
        return next((broker for broker in state.replicas if broker in alive), NO_LEADER)
    return NO_LEADER


def _elect(
    kind: ElectionType, name: str, topic: TopicImage | None, partition: int, image: ClusterImage
) -> tuple[Outcome, PartitionState | None]:
    if topic is None:
        message = f"No such topic as {name}"
        return Outcome(ErrorCode.unknown_topic_or_partition, message), None
    if not 0 <= partition < len(topic.partitions):
        message = f"No such partition as {name}-{partition}"
        return Outcome(ErrorCode.unknown_topic_or_partition, message), None
    state = topic.partitions[partition]
    preferred = state.replicas[0]
    alive = list(image.brokers)
    if kind is ElectionType.PREFERRED:
        if state.leader == preferred:
            return Outcome(ErrorCode.election_not_needed, _NOT_NEEDED), None
        if preferred not in alive or preferred not in state.isr:
            return Outcome(ErrorCode.preferred_leader_not_available, _NO_PREFERRED), None
        return DONE, _led_by(state, preferred)
    if state.leader != NO_LEADER:
        return Outcome(ErrorCode.election_not_needed, _NOT_NEEDED), None
    leader = next_leader(state, alive, unclean=True)
    if leader == NO_LEADER:
        return Outcome(ErrorCode.eligible_leaders_not_available, _NO_ELIGIBLE), None
    return DONE, _led_by(state, leader)


_NOT_NEEDED = "Leader election not needed for topic partition."
_NO_PREFERRED = "The preferred leader was not available."
_NO_ELIGIBLE = "Eligible topic partition leaders are not available."


def _led_by(state: PartitionState, leader: int) -> PartitionState:
    isr = state.isr if leader in state.isr else (leader,)
    return state._replace(
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
        isr=isr,
        partition_epoch=state.partition_epoch + 1,
    )


def _write(
    draft: Draft, topic: TopicImage, changed: Mapping[int, PartitionState], controller_epoch: int
) -> None:
    states = list(topic.partitions)
    for partition, state in changed.items():
        draft.writes.append(
            SetData(
                layout.state_path(topic.name, partition),
                layout.write_state(state, controller_epoch),
                states[partition].partition_epoch,
            )
        )
        states[partition] = state
    image = TopicImage(
        topic.name,
        topic.topic_id,
        tuple(states),
        topic.overrides,
        topic.node_version,
        topic.config_version,
    )
    draft.news.append(PartitionsChanged(image, tuple(changed)))
