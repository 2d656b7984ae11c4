"""Deleting topics, by name or by id (DeleteTopics; ids since KIP-516).

A mark under /admin/delete_topics is written first and removed last. If the controller stops in
between, the next one finishes the deletion (`recovery`). A dead broker does not delay a deletion:
when it returns, the id of its folder is noted as deleted (`deletion_notes`), and it deletes the
folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ottla.config.broker import BrokerConfig
from ottla.controller import layout
from ottla.controller.deletion_notes import deletion_note
from ottla.controller.image import ClusterImage, TopicDeleted, TopicImage
from ottla.controller.plan import (
    DONE,
    Charge,
    Outcome,
    PlanBuilder,
    Step,
    Steps,
    free,
    refused,
)
from ottla.coordination.tree import Create, Delete
from ottla.protocol.errors import ApiError, ErrorCode

NO_ID: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class TopicToDelete:
    """One topic to delete; exactly one of the two fields is set."""

    name: str | None = None
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """The outcome for one topic."""

    name: str | None
    topic_id: UUID | None
    outcome: Outcome


def delete_topics(
    topics: Sequence[TopicToDelete],
    image: ClusterImage,
    config: BrokerConfig,
    charge: Charge = free,
) -> Steps[tuple[DeletionResult, ...]]:
    """Delete each topic that exists; the other outcomes give the reason. `charge` gets the
    partitions of each.

    Raises TOPIC_DELETION_DISABLED when delete.topic.enable is false.
    """
    if not config.delete_topic_enable:
        raise ApiError(ErrorCode.topic_deletion_disabled, "Topic deletion is disabled.")
    builder, step = PlanBuilder(), Step()
    results: list[DeletionResult] = []
    found: list[tuple[TopicToDelete, TopicImage]] = []
    counts: dict[TopicToDelete, int] = {}
    for requested in topics:
        if step.is_full(2):
            yield
        counts[requested] = counts.get(requested, 0) + 1
    for requested, count in counts.items():
        if step.is_full(5):
            yield
        outcome = _refusal(requested, count)
        topic = None if outcome is not None else _find(requested, image)
        if topic is not None:
            found.append((requested, topic))
            continue
        if outcome is None and requested.name is None:
            outcome = Outcome(
                ErrorCode.unknown_topic_id, "This server does not host this topic ID."
            )
        elif outcome is None:
            outcome = Outcome(
                ErrorCode.unknown_topic_or_partition,
                "This server does not host this topic-partition.",
            )
        results.append(DeletionResult(requested.name, requested.topic_id, outcome))
    named = Counter(topic.name for _, topic in found)
    for requested, topic in found:
        if step.is_full(50 + 5 * len(topic.partitions)):
            yield
        if named[topic.name] > 1:
            # One answer for a topic named by name and by id (ControllerApis.deleteTopics).
            if requested.name is not None:
                message = "The provided topic name maps to an ID that was already supplied."
                outcome = Outcome(ErrorCode.invalid_request, message)
                results.append(DeletionResult(topic.name, topic.topic_id, outcome))
            continue
        try:
            charge(len(topic.partitions))
        except ApiError as error:
            results.append(DeletionResult(topic.name, topic.topic_id, refused(error)))
            continue
        _delete(builder, topic)
        results.append(DeletionResult(topic.name, topic.topic_id, DONE))
    return builder.plan(tuple(results))


def _refusal(requested: TopicToDelete, count: int) -> Outcome | None:
    message = None
    if requested.name is None and requested.topic_id in (None, NO_ID):
        message = "Neither topic name nor id were specified."
    elif requested.name is not None and requested.topic_id not in (None, NO_ID):
        message = "You may not specify both topic name and topic id."
    elif count > 1:
        message = f"Duplicate topic {'id' if requested.name is None else 'name'}."
    return None if message is None else Outcome(ErrorCode.invalid_request, message)


def _find(requested: TopicToDelete, image: ClusterImage) -> TopicImage | None:
    if requested.name is not None:
        return image.topic(requested.name)
    assert requested.topic_id is not None
    return image.topic_by_id(requested.topic_id)


def _delete(builder: PlanBuilder, topic: TopicImage) -> None:
    mark = layout.deleted_topic_path(topic.name)
    builder.writes.append(Create(mark))
    for partition, state in enumerate(topic.partitions):
        builder.writes.append(
            Delete(layout.state_path(topic.name, partition), state.partition_epoch)
        )
        builder.writes.append(Delete(layout.partition_path(topic.name, partition)))
    builder.writes.append(Delete(layout.partitions_path(topic.name)))
    builder.writes.append(deletion_note(topic.name, topic.topic_id))
    builder.writes.append(Delete(layout.topic_path(topic.name), topic.node_version))
    if topic.config_version is not None:
        builder.writes.append(Delete(layout.topic_config_path(topic.name), topic.config_version))
    builder.writes.append(Delete(mark))
    builder.deltas.append(TopicDeleted(topic))
