"""`plan_topic`: everything about a pipeline into a topic that can be checked before Spark runs it.

Planning changes nothing; `run.to_topic` carries the plan out. What a checkpoint belongs to is kept
as for a table (`checkpoint.identity`), with the topic's id in place of the table's.

`<checkpoint>/ottla-topic.json`, one JSON object, is written before the first batch and stays:

    {"version": 1, "tasks": n}

It is the number of tasks of each batch: see `sinks.topic`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.pipelines.checkpoint import changes
from ottla.pipelines.checkpoint.checkpoint import Checkpoint, Position
from ottla.pipelines.checkpoint.identity import Identity, Offsets, Replacing
from ottla.pipelines.checkpoint.next_batch import Refuse, decide
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import Brokers, TopicState, look_up
from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.run.plan import (
    check_folder,
    check_group,
    comparable,
    identity_of,
    look_up_topics,
    plan_move,
    without_lost,
)
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.run.time_zone import check_zone
from ottla.pipelines.sinks.topic import TopicSink
from ottla.pipelines.sinks.topic_columns import RecordColumns
from ottla.pipelines.source.source import Source, sources_of
from ottla.pipelines.source.starting import starting_offsets
from ottla.pipelines.spark.jvm.files import Files

FILE: Final = "ottla-topic.json"
VERSION: Final = 1
MARKS_KEPT: Final = "offsets.retention.minutes"
DEFAULT_MARKS_KEPT_MIN: Final = 10_080
"""Kafka's default (KIP-186), where the broker does not tell its own."""


@dataclass(frozen=True)
class TopicTarget:
    """The topic that is written: `producer` has the settings of producers alone."""

    name: str
    kafka: KafkaSettings
    columns: RecordColumns
    producer: Mapping[str, str]


@dataclass(frozen=True)
class TopicPlan:
    """A specification and a target that fit what exists.

    `position`: where the checkpoint stood when it was checked.
    `starting`: explicit first offsets of a new query, None where the checkpoint continues.
    `replacing`: the state in the checkpoint is moved away before a new query starts there.
    `notices`: what the user should know, a line each.
    """

    specification: Specification
    sink: TopicSink
    topic_id: str
    checkpoint: Checkpoint
    sources: tuple[tuple[int, Source], ...]
    cluster: str
    topics: dict[str, TopicState]
    position: Position
    starting: Offsets | None
    replacing: Replacing | None
    notices: tuple[str, ...]

    @property
    def topic_ids(self) -> dict[str, str]:
        """The id of each topic that is read."""
        return {name: state.topic_id for name, state in self.topics.items()}

    def identity(self, replacing: Replacing | None) -> Identity:
        """Return what the checkpoint belongs to from now on."""
        return Identity(
            self.cluster,
            self.topic_ids,
            self.topic_id,
            self.sink.shown,
            str(self.specification.delivery),
            replacing,
            time_zone=self.specification.time_zone,
        )


def plan_topic(specification: Specification, target: TopicTarget) -> TopicPlan:
    """Check a specification of a streaming frame against what is there; change nothing.

    Raises PipelineError: brokers that do not answer, a topic or checkpoint that does not fit,
    records that are lost.
    """
    frame = specification.frame
    if not frame.isStreaming:
        raise PipelineError(
            "to_topic takes a streaming frame, such as topic() gives. Write this one with Spark's "
            "own sink: df.write.format('kafka')"
        )
    sources = tuple(sources_of(frame))
    check_group(specification, sources)
    target.columns.records(frame)
    cluster, topics = look_up_topics(sources)
    written = look_up(target.kafka, [target.name])
    state = written.topics[target.name]
    if target.name in topics and topics[target.name].topic_id == state.topic_id:
        raise PipelineError(
            f"The query reads topic {target.name!r} and would write to it without end: choose "
            "another topic"
        )
    files = Files(frame.sparkSession, os.fspath(specification.checkpoint))
    checkpoint = Checkpoint(files)
    check_folder(specification, checkpoint)
    cores = frame.sparkSession.sparkContext.defaultParallelism
    tasks = read_tasks(files) or max(1, min(len(state.latest), cores))
    sink = TopicSink(target.name, target.kafka, target.columns, target.producer, tasks)
    if len(state.latest) < tasks:
        raise PipelineError(
            f"Topic {target.name!r} has {len(state.latest)} partitions, and the checkpoint "
            f"{specification.checkpoint} writes it with {tasks} tasks: use a new checkpoint"
        )
    identity = identity_of(checkpoint)
    place = str(specification.checkpoint)
    if wrong := wrong_topic(identity, place, sink, state.topic_id):
        raise PipelineError(wrong)
    notices: list[str] = []
    position = checkpoint.position()
    starting, replacing = _where(
        specification, checkpoint, identity, sources, cluster, topics, notices
    )
    delivery = DeliveryGuarantee(specification.delivery)
    if delivery.doubles_nothing and starting is None:
        if delivery is DeliveryGuarantee.EXACTLY_ONCE:  # the other one repeats no batch
            check_marks(checkpoint, place, target.kafka, time.time() * 1_000)
        check_next(checkpoint, place, sink, len(sources))
    return TopicPlan(
        specification,
        sink,
        state.topic_id,
        checkpoint,
        sources,
        cluster,
        topics,
        position,
        starting,
        replacing,
        tuple(notices),
    )


def wrong_topic(
    identity: Identity | None, place: str, sink: TopicSink, topic_id: str
) -> str | None:
    """Return why this checkpoint cannot write to this topic, None when it can."""
    if identity is None or identity.table_id == topic_id:
        return None
    if identity.table_location == sink.shown:
        return (
            f"Topic {sink.name!r} was deleted and created again since the checkpoint {place} last "
            "wrote to it, or is on another cluster: earlier rows would be missing. Use a new "
            "checkpoint to write all of it again, or starting= to choose where it begins"
        )
    return (
        f"The checkpoint {place} belongs to {identity.table_location}, not to {sink.shown}. Use a "
        "new checkpoint for this topic"
    )


def _where(
    specification: Specification,
    checkpoint: Checkpoint,
    identity: Identity | None,
    sources: tuple[tuple[int, Source], ...],
    cluster: str,
    topics: dict[str, TopicState],
    notices: list[str],
) -> tuple[Offsets | None, Replacing | None]:
    """Return where a new query starts, and the move that makes room for it.

    Without offsets in it the query continues from its checkpoint.
    """
    place = str(specification.checkpoint)
    replacing = identity.replacing if identity else None
    next_offsets = replacing.starting if replacing else checkpoint.begins()
    if not next_offsets and checkpoint.planned() is None:
        return {each.name: _first_offsets(each, topics) for _, each in sources} or None, None
    if wrong := changes.wrong_source(identity, place, cluster, list(topics), next_offsets):
        raise PipelineError(wrong)
    notices += check_zone(specification, identity)
    starting = without_lost(
        specification, checkpoint, identity, sources, topics, next_offsets, notices
    )
    if starting is None:
        return (next_offsets, replacing) if replacing else (None, None)
    if checkpoint.begun_ms() is not None:
        notices.append(
            "The last batch was cut off: what is written of it is written again by the new query"
        )
    return starting, plan_move(specification, checkpoint, replacing, starting, notices)


def _first_offsets(source: Source, topics: Mapping[str, TopicState]) -> dict[int, int]:
    if source.starting == "table":
        raise PipelineError(
            "starting='table' needs a table: with to_topic() write 'earliest', 'latest', a time or "
            "offsets"
        )
    return starting_offsets(source, topics[source.name])


def check_marks(checkpoint: Checkpoint, place: str, kafka: KafkaSettings, now_ms: float) -> None:
    """Refuse to repeat a batch that is older than its marks may be.

    Brokers remove a group's commits some time after they were made. Without marks nobody knows
    which tasks of the batch are written. Raises PipelineError.
    """
    begun = checkpoint.begun_ms()
    if begun is None:
        return
    kept_min = Brokers(kafka).setting(MARKS_KEPT)
    limit_min = int(kept_min or DEFAULT_MARKS_KEPT_MIN)
    if now_ms - begun > limit_min * 60_000:
        raise PipelineError(
            f"The last batch of the checkpoint {place} was cut off more than {limit_min} minutes "
            f"ago, and brokers keep no longer ({MARKS_KEPT}) which part of it is written. Start "
            "once with delivery='at-least-once', which may write its rows twice, or use a new "
            "checkpoint"
        )


def check_next(checkpoint: Checkpoint, place: str, sink: TopicSink, sources: int) -> None:
    """Refuse a checkpoint that does not agree with the marks of its query. Raises PipelineError.

    `sources`: how many topics the query reads.
    """
    query_id = checkpoint.query_id()
    if not query_id:
        return
    held = comparable(sink.held(query_id), checkpoint, sources)
    answer = decide(checkpoint.plans(place), held)
    if isinstance(answer, Refuse):
        raise PipelineError(answer.sentence)


def read_tasks(files: Files) -> int | None:
    """Return the number of tasks of a checkpoint, None for a new one. Raises PipelineError."""
    text = files.read(FILE)
    if not text:
        return None
    try:
        document: Any = json.loads(text)
        if document["version"] == VERSION and int(document["tasks"]) > 0:
            return int(document["tasks"])
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(_damaged(files)) from error
    raise PipelineError(_damaged(files))


def _damaged(files: Files) -> str:
    return f"{files.location}/{FILE} is damaged. Restore it, or use a new checkpoint"


def keep_tasks(files: Files, tasks: int) -> None:
    """Keep the number of tasks in the checkpoint."""
    files.write(FILE, json.dumps({"version": VERSION, "tasks": tasks}) + "\n")
