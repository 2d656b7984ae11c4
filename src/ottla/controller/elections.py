"""Electing leaders by request (ElectLeaders; KIP-183, KIP-460).

A new leader gets the next leader epoch, so that writes of the former leader can be recognized.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence

from ottla.controller.image import NO_LEADER, ClusterImage, TopicImage
from ottla.controller.leadership import Brokers, all_brokers, with_leader
from ottla.controller.partition_changes import PartitionChanges
from ottla.controller.plan import DONE, Outcome, PlanBuilder, Step, Steps
from ottla.protocol.errors import ErrorCode


class ElectionType(enum.IntEnum):
    """As numbered in ElectLeaders requests."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    kind: ElectionType,
    wanted: Mapping[str, Sequence[int]] | None,
    image: ClusterImage,
    *,
    shutting_down: Collection[int] = (),
) -> Steps[dict[str, dict[int, Outcome]]]:
    """Give each named partition the leader that it should have.

    `wanted` None means every partition; the reply then omits those that need no election, as in
    Kafka. Brokers that are shutting down are not elected.
    """
    builder, step = PlanBuilder(), Step()
    changes = PartitionChanges(image)
    brokers = all_brokers(image, shutting_down)
    reply: dict[str, dict[int, Outcome]] = {}
    names = {name: range(len(topic.partitions)) for name, topic in image.topics.items()}
    for name, partitions in (names if wanted is None else wanted).items():
        topic = image.topic(name)
        outcomes: dict[int, Outcome] = {}
        if step.is_full(5):
            yield
        for partition in partitions:
            if step.is_full(5):
                yield
            if partition in outcomes:
                continue
            outcomes[partition] = _elect(kind, name, topic, partition, brokers, changes)
        if wanted is None:
            outcomes = {
                partition: outcome
                for partition, outcome in outcomes.items()
                if outcome.code is not ErrorCode.election_not_needed
            }
        reply[name] = outcomes
    yield from changes.add_in_steps(builder)
    return builder.plan(reply)


def _elect(
    kind: ElectionType,
    name: str,
    topic: TopicImage | None,
    partition: int,
    brokers: Brokers,
    changes: PartitionChanges,
) -> Outcome:
    if topic is None:
        message = f"No such topic as {name}"
        return Outcome(ErrorCode.unknown_topic_or_partition, message)
    if not 0 <= partition < len(topic.partitions):
        message = f"No such partition as {name}-{partition}"
        return Outcome(ErrorCode.unknown_topic_or_partition, message)
    state = topic.partitions[partition]
    if kind is ElectionType.PREFERRED:
        preferred = state.replicas[0]
        if state.leader == preferred:
            return Outcome(ErrorCode.election_not_needed, _NOT_NEEDED)
        if not brokers.eligible(preferred) or preferred not in state.isr:
            return Outcome(ErrorCode.preferred_leader_not_available, _NO_PREFERRED)
        isr = tuple(broker for broker in state.isr if broker in brokers.live)
        after = state._replace(leader=preferred, leader_epoch=state.leader_epoch + 1, isr=isr)
    else:
        if state.leader != NO_LEADER:
            return Outcome(ErrorCode.election_not_needed, _NOT_NEEDED)
        after = with_leader(state, brokers, unclean=True)
        if after.leader == NO_LEADER:
            return Outcome(ErrorCode.eligible_leaders_not_available, _NO_ELIGIBLE)
    changes.put(topic, partition, after)
    return DONE


_NOT_NEEDED = "Leader election not needed for topic partition."
_NO_PREFERRED = "The preferred leader was not available."
_NO_ELIGIBLE = "Eligible topic partition leaders are not available."
