"""Deleting topics, by name or by id (DeleteTopics; ids since KIP-516).

A mark under /admin/delete_topics comes first and goes last: where the writes stop in between, the
next controller finishes them (`recovery`). A broker that is away does not hold a deletion up: when
it returns, the id of its folder is one that no topic has, and the folder goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ottla.config.broker import BrokerConfig
from ottla.controller import layout
from ottla.controller.image import ClusterImage, TopicDeleted, TopicImage
from ottla.controller.plan import DONE, Draft, Outcome, Plan
from ottla.coordination.tree import Create, Delete
from ottla.protocol.errors import ApiError, ErrorCode

NO_ID: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class UnwantedTopic:
    """One topic to be deleted; exactly one of the two is to be given."""

    name: str | None = None
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """The outcome for one topic."""

    name: str | None
    topic_id: UUID | None
    outcome: Outcome


def delete_topics(
    unwanted: Sequence[UnwantedTopic], image: ClusterImage, config: BrokerConfig
) -> Plan[tuple[DeletionResult, ...]]:
    """Delete each topic that is there; the others' outcomes say why not.

    Raises TOPIC_DELETION_DISABLED when delete.topic.enable is false.
    """
    if not config.delete_topic_enable:
        raise ApiError(ErrorCode.topic_deletion_disabled, "Topic deletion is disabled.")
    draft = Draft()
    results: list[DeletionResult] = []
    found: list[tuple[UnwantedTopic, TopicImage]] = []
    for wish, count in Counter(unwanted).items():
        outcome = _refusal(wish, count)
        topic = None if outcome is not None else _find(wish, image)
        if topic is not None:
            found.append((wish, topic))
            continue
        if outcome is None and wish.name is None:
            outcome = Outcome(
                ErrorCode.unknown_topic_id, "This server does not host this topic ID."
            )
        elif outcome is None:
            outcome = Outcome(
                ErrorCode.unknown_topic_or_partition,
                "This server does not host this topic-partition.",
            )
        results.append(DeletionResult(wish.name, wish.topic_id, outcome))
    named = Counter(topic.name for _, topic in found)
    for wish, topic in found:
        if named[topic.name] > 1:
            # One answer for both (ControllerApis.deleteTopics).
            if wish.name is not None:
                message = "The provided topic name maps to an ID that was already supplied."
                outcome = Outcome(ErrorCode.invalid_request, message)
                results.append(DeletionResult(topic.name, topic.topic_id, outcome))
            continue
        _delete(draft, topic)
        results.append(DeletionResult(topic.name, topic.topic_id, DONE))
    return draft.plan(tuple(results))


def _refusal(wish: UnwantedTopic, count: int) -> Outcome | None:
    message = None
    if wish.name is None and wish.topic_id in (None, NO_ID):
        message = "Neither topic name nor id were specified."
    elif wish.name is not None and wish.topic_id not in (None, NO_ID):
        message = "You may not specify both topic name and topic id."
    elif count > 1:
        message = f"Duplicate topic {'id' if wish.name is None else 'name'}."
    return None if message is None else Outcome(ErrorCode.invalid_request, message)


def _find(wish: UnwantedTopic, image: ClusterImage) -> TopicImage | None:
    if wish.name is not None:
        return image.topic(wish.name)
    assert wish.topic_id is not None
    return image.topic_by_id(wish.topic_id)


def _delete(draft: Draft, topic: TopicImage) -> None:
    mark = layout.deleted_topic_path(topic.name)
    draft.writes.append(Create(mark))
    for partition, state in enumerate(topic.partitions):
        draft.writes.append(Delete(layout.state_path(topic.name, partition), state.partition_epoch))
        draft.writes.append(Delete(layout.partition_path(topic.name, partition)))
    draft.writes.append(Delete(layout.partitions_path(topic.name)))
    draft.writes.append(Delete(layout.topic_path(topic.name), topic.node_version))
    if topic.config_version is not None:
        draft.writes.append(Delete(layout.topic_config_path(topic.name), topic.config_version))
    draft.writes.append(Delete(mark))
    draft.deltas.append(TopicDeleted(topic))
