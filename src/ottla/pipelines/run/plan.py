"""`plan`: everything about a pipeline that can be checked before Spark runs it.

A specification is what the caller asked for. A plan is a specification that fits what is there:
brokers, topics, table and checkpoint. Making one changes nothing; `run.start` carries it out.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from ottla.pipelines.delivery import Delivery, read_delivery
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.identity import changes
from ottla.pipelines.identity.record import FILE, Identity, Offsets, Replacing, read_identity
from ottla.pipelines.kafka.brokers import TopicState, look_up
from ottla.pipelines.run.checkpoint import Checkpoint
from ottla.pipelines.run.starting import first_offsets
from ottla.pipelines.sinks.delta import DeltaSink, SchemaChanges
from ottla.pipelines.sinks.target import find_target
from ottla.pipelines.source.source import Source, sources_of
from ottla.pipelines.spark.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log: Final = logging.getLogger("ottla.pipelines")

OnLost = Literal["stop", "skip"]
_TRIGGERS: Final = ("processingTime", "availableNow", "once")


@dataclass(frozen=True)
class Specification:
    """What the caller of `to_delta` asked for, in itself consistent."""

    frame: DataFrame
    target: str | os.PathLike[str]
    checkpoint: str | os.PathLike[str]
    trigger: dict[str, Any]
    delivery: Delivery
    schema_changes: SchemaChanges
    on_lost: OnLost
    partition_by: tuple[str, ...]
    group: str | None
    max_rejects: int | None


@dataclass(frozen=True)
class Plan:
    """A specification that fits what is there.

    `starting`: explicit first offsets of a new query, None where the checkpoint goes on.
    `replacing`: the state in the checkpoint is moved away before a new query starts there.
    `notices`: what the user should know, a line each.
    """

    specification: Specification
    sink: DeltaSink
    checkpoint: Checkpoint
    sources: tuple[tuple[int, Source], ...]
    cluster: str
    topics: dict[str, TopicState]
    starting: Offsets | None
    replacing: Replacing | None
    notices: tuple[str, ...]

    @property
    def topic_ids(self) -> dict[str, str]:
        """The id of each topic."""
        return {name: state.topic_id for name, state in self.topics.items()}


def specify(
    frame: DataFrame,
    target: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str],
    trigger: Mapping[str, Any] | None = None,
    delivery: str = "exactly-once",
    schema_changes: str = "refuse",
    on_lost: str = "stop",
    partition_by: str | tuple[str, ...] | list[str] = (),
    group: str | None = None,
    max_rejects: int | None = None,
) -> Specification:
    """Check the arguments of `to_delta` in themselves. Raises PipelineError."""
    if not checkpoint or not isinstance(checkpoint, str | os.PathLike):
        raise PipelineError(
            "to_delta needs a checkpoint: a folder where the query keeps its place, kept as "
            "long as the table, such as checkpoint='./checkpoints/flights'"
        )
    chosen = dict(trigger or {})
    if len(chosen) > 1 or not set(chosen) <= set(_TRIGGERS):
        raise PipelineError(
            f"trigger={trigger!r}: write one of {{'availableNow': True}}, "
            "{'processingTime': '10 seconds'}, {'once': True}"
        )
    if max_rejects is not None and (type(max_rejects) is not int or max_rejects < 0):
        raise PipelineError(f"max_rejects={max_rejects!r}: write a number of rows, or None")
    if group is not None and (not isinstance(group, str) or not group.strip()):
        raise PipelineError(f"group={group!r}: write a group's name, such as 'flights-delta'")
    columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    return Specification(
        frame,
        target,
        checkpoint,
        chosen,
        read_delivery(delivery, "Delta", frozenset(Delivery)),
        _one_of("schema_changes", schema_changes, ("refuse", "add")),
        _one_of("on_lost", on_lost, ("stop", "skip")),
        columns,
        group,
        max_rejects,
    )


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> Any:
    if value not in allowed:
        raise PipelineError(f"{name}={value!r}: write {' or '.join(map(repr, allowed))}")
    return value


def plan(specification: Specification) -> Plan:
    """Check a specification of a streaming frame against what is there; change nothing.

    Raises PipelineError: brokers that do not answer, a topic, table or checkpoint that does not
    fit, records that are lost.
    """
    frame = specification.frame
    spark = frame.sparkSession
    sources = tuple(sources_of(frame))
    if specification.group is not None and not sources:
        raise PipelineError(
            f"group={specification.group!r} is kept on the brokers of the frame's topic, and the "
            "frame reads no topic(): leave group away"
        )
    cluster, topics = _look_up(sources)
    target = find_target(spark, specification.target)
    sink = DeltaSink(
        spark,
        target,
        frame.schema,
        specification.schema_changes,
        specification.partition_by,
    )
    if target.location:
        sink.table.forget()
    notices = sink.check()
    checkpoint = Checkpoint(Files(spark, os.fspath(specification.checkpoint)))
    check_place(specification, checkpoint, sink)
    identity = _identity(checkpoint)
    starting, replacing = _where(
        specification, sink, checkpoint, identity, sources, cluster, topics, notices
    )
    return Plan(
        specification,
        sink,
        checkpoint,
        sources,
        cluster,
        topics,
        starting,
        replacing,
        tuple(notices),
    )


def _look_up(sources: tuple[tuple[int, Source], ...]) -> tuple[str, dict[str, TopicState]]:
    """Return the cluster's id (several: joined) and the state of each topic."""
    names: dict[Any, list[str]] = {}
    for _, source in sources:
        names.setdefault(source.kafka, []).append(source.name)
    clusters: list[str] = []
    topics: dict[str, TopicState] = {}
    for kafka, wanted in names.items():
        state = look_up(kafka, wanted)
        if state.cluster_id not in clusters:
            clusters.append(state.cluster_id)
        for name, topic in state.topics.items():
            if name in topics and topics[name].topic_id != topic.topic_id:
                raise PipelineError(
                    f"The frame reads a topic {name!r} of two clusters, which one checkpoint "
                    "cannot tell apart: write each with a query of its own"
                )
            topics[name] = topic
    return ",".join(clusters), topics


def check_place(specification: Specification, checkpoint: Checkpoint, sink: DeltaSink) -> None:
    """Refuse a checkpoint that Delta would delete, and one that is a file."""
    place, table = checkpoint.files.location, sink.target.location
    inside = place.removeprefix(table.rstrip("/") + "/")
    if place == table or (inside != place and not inside.startswith("_")):
        raise PipelineError(
            f"The checkpoint {specification.checkpoint} lies inside the table {sink.name}: Delta's "
            "VACUUM would delete it. Give it a folder of its own, beside the table"
        )
    if checkpoint.files.is_file():
        raise PipelineError(
            f"The checkpoint {specification.checkpoint} is a file: give the name of a folder"
        )


def _identity(checkpoint: Checkpoint) -> Identity | None:
    text = checkpoint.files.read(FILE)
    return read_identity(text, f"{checkpoint.files.location}/{FILE}") if text else None


def _where(
    specification: Specification,
    sink: DeltaSink,
    checkpoint: Checkpoint,
    identity: Identity | None,
    sources: tuple[tuple[int, Source], ...],
    cluster: str,
    topics: dict[str, TopicState],
    notices: list[str],
) -> tuple[Offsets | None, Replacing | None]:
    """Return the first offsets of a new query, and the move that makes room for it."""
    place = str(specification.checkpoint)
    replacing = identity.replacing if identity else None
    if replacing is not None:
        standing = replacing.starting
    else:
        query_id = checkpoint.query_id()
        standing = checkpoint.standing(sink.last_batch(query_id) if query_id else None)
    if not standing and checkpoint.planned() is None:
        starting, more = first_offsets(
            specification.on_lost, sink, [source for _, source in sources], cluster, topics
        )
        notices += more
        return starting, None
    if wrong := changes.wrong_source(identity, place, cluster, list(topics), standing):
        raise PipelineError(wrong)
    _check_table(specification, sink, checkpoint, identity)
    lost = changes.losses(identity, standing, {name: _now(topics[name]) for name in topics})
    if not lost:
        return (standing, replacing) if replacing else (None, None)
    if specification.on_lost == "skip" and checkpoint.count_sources() > len(sources):
        raise PipelineError(
            f"{lost[0].sentence}. on_lost='skip' cannot go on: the frame also reads streams that "
            "are not topic()'s, and they would start again from their beginning"
        )
    starting = resolve(lost, specification.on_lost, standing)
    notices += [loss.sentence + "; on_lost='skip' goes on without them" for loss in lost]
    number = replacing.number if replacing else checkpoint.next_replaced()
    notices.append(
        f"The state of the query in {place} is moved to replaced-{number}: a new query begins, "
        "and what a stateful query had gathered is lost"
    )
    return starting, Replacing(number, starting)


def resolve(lost: list[changes.Loss], on_lost: OnLost, standing: Offsets) -> Offsets:
    """Return where to go on without what is lost. Raises PipelineError unless it may be skipped."""
    if on_lost == "stop":
        raise PipelineError(
            f"{lost[0].sentence}. Write on_lost='skip' to go on without them, or use a new "
            "checkpoint and a new table"
        )
    return standing | {loss.topic: loss.go_on_at for loss in lost}


def _now(state: TopicState) -> changes.Partitions:
    return changes.Partitions(state.topic_id, state.earliest, state.latest)


def _check_table(
    specification: Specification,
    sink: DeltaSink,
    checkpoint: Checkpoint,
    identity: Identity | None,
) -> None:
    """Refuse a checkpoint whose batches are not in the table: their rows would be missing."""
    place = str(specification.checkpoint)
    snapshot = sink.table.snapshot() if sink.target.location else None
    if wrong := changes.wrong_table(
        identity,
        place,
        sink.name,
        snapshot.table_id if snapshot else "",
        sink.target.location,
    ):
        raise PipelineError(wrong)
    if identity is None and checkpoint.done() is not None:
        # A checkpoint from before checkpoints kept their identity: it wrote exactly once.
        held = snapshot.transactions() if snapshot and snapshot.version >= 0 else {}
        if checkpoint.query_id() not in held:
            raise PipelineError(
                f"The checkpoint {place} has delivered batches that {sink.name} does not hold: it "
                "belongs to another table, or the table was deleted and created again. Use a new "
                "checkpoint to start from the beginning of the topic"
            )
