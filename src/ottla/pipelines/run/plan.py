"""`plan`: everything about a pipeline that can be checked before Spark runs it.

A specification is what the caller asked for. A plan is a specification that fits the brokers,
topics, table and checkpoint that exist. Planning changes nothing; `run.start` carries the plan out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ottla.pipelines.checkpoint import changes
from ottla.pipelines.checkpoint.checkpoint import Checkpoint, Position
from ottla.pipelines.checkpoint.identity import IDENTITY_DOCUMENT, Identity, Offsets, Replacing
from ottla.pipelines.checkpoint.next_batch import Held, Refuse, Skip, decide, notice
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import TopicState, look_up
from ottla.pipelines.rejects.pending import PendingReject
from ottla.pipelines.run.first_offsets import (
    FORMER,
    Start,
    check_created_again,
    first_offsets,
    newest_in,
)
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.run.time_zone import check_zone
from ottla.pipelines.run.truncations import check_alone, check_one_partition, check_one_topic
from ottla.pipelines.source.source import Source, sources_of, topics_read
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.target.keyed_table import KeyedTable
from ottla.pipelines.target.port import Sink

SinkOf: TypeAlias = Callable[[Specification], Sink]
"""Returns the target that a specification names. Raises PipelineError."""


@dataclass(frozen=True)
class Plan:
    """A specification that fits what exists.

    `sink_of`: makes the sink again, for a frame with other columns.
    `position`: where the checkpoint stood when it was checked.
    `starting`: explicit first offsets of a new query, None where the checkpoint continues.
    `replacing`: the state in the checkpoint is moved away before a new query starts there.
    `notices`: what the user should know, a line each.
    `due`: rejected rows of the table's last batches, which may not be written.
    `after`: the queries that this one continues, `newest` and `since` as in `Start`.
    """

    specification: Specification
    sink: Sink
    checkpoint: Checkpoint
    sources: tuple[tuple[int, Source], ...]
    cluster: str
    topics: dict[str, TopicState]
    position: Position
    starting: Offsets | None
    replacing: Replacing | None
    notices: tuple[str, ...]
    due: tuple[PendingReject, ...]
    after: tuple[str, ...]
    newest: dict[str, tuple[str, int]] | None
    since: str | None
    sink_of: SinkOf

    @property
    def topic_ids(self) -> dict[str, str]:
        """The id of each topic."""
        return {name: state.topic_id for name, state in self.topics.items()}

    @property
    def identity(self) -> Identity:
        """What the checkpoint belongs to from now on, with the move that makes room for it."""
        return Identity(
            self.cluster,
            self.topic_ids,
            self.sink.table_id(),
            self.sink.location,
            str(self.specification.delivery),
            self.replacing,
            self.specification.key_columns,
            self.specification.time_zone,
            self.after,
            self.newest,
            self.since,
        )


def plan(specification: Specification, sink_of: SinkOf) -> Plan:
    """Check a specification of a streaming frame against what is there; change nothing.

    Raises PipelineError: brokers that do not answer, a topic, table or checkpoint that does not
    fit, records that are lost.
    """
    sink = sink_of(specification)
    frame = specification.frame
    spark = frame.sparkSession
    sources = tuple(sources_of(frame))
    check_group(specification, sources)
    _check_tombstones(specification.keyed_table, sources)
    _check_truncations(specification, sources)
    _check_dead_letters(specification.dead_letters, sources)
    cluster, topics = look_up_topics(sources)
    keyed, ends = specification.keyed_table, {name: one.latest for name, one in topics.items()}
    check_one_partition(keyed, ends)
    checkpoint = Checkpoint(Files(spark, os.fspath(specification.checkpoint)))
    check_path(specification, checkpoint, sink)
    sink.forget()
    _check_expectations(specification, sink)
    notices = [*sink.check(), *key_notices(sink.keyed)]
    notices += [said for one in topics.values() for said in one.notices()]
    if keyed is not None and keyed.has_truncations:
        check_alone(keyed, topics_read(frame), sink.metadata(), sink.name)
    _check_loop(sink, topics)
    checkpoint.check()
    position = checkpoint.position()
    identity = identity_of(checkpoint)
    start, replacing = _where(
        specification, sink, checkpoint, identity, sources, cluster, topics, notices
    )
    if specification.mode == "update" and start.offsets:
        _check_results(specification, sink, start)
    begun_ms = checkpoint.begun_ms() if not start.offsets else None
    if begun_ms is not None:
        delivery, path = DeliveryGuarantee(specification.delivery), str(specification.checkpoint)
        sink.check_repeat(delivery, begun_ms, path)
    return Plan(
        specification,
        sink,
        checkpoint,
        sources,
        cluster,
        topics,
        position,
        start.offsets or None,
        replacing,
        tuple(notices + start.notices),
        tuple(start.due),
        start.after,
        start.newest,
        start.since,
        sink_of,
    )


def _check_tombstones(keyed: KeyedTable | None, sources: tuple[tuple[int, Source], ...]) -> None:
    """Refuse tombstones that cannot be told from rows of nulls."""
    events = [source.name for _, source in sources if source.is_debezium]
    if keyed is not None and events and not (keyed.has_tombstones or keyed.is_result):
        raise PipelineError(
            f"topic({events[0]!r}, source_format='debezium') marks the events that delete a row in "
            "the column tombstone, and the frame has no such column: select it too"
        )
    marked = [source.name for _, source in sources if source.tombstones == "mark"]
    if keyed is not None and marked and not keyed.has_tombstones:
        raise PipelineError(
            f"topic({marked[0]!r}, tombstones='mark') marks the records that delete a key in the "
            "column tombstone, and the frame has no such column: select it too"
        )


def _check_truncations(
    specification: Specification, sources: tuple[tuple[int, Source], ...]
) -> None:
    """Refuse truncations that nothing applies, and those that the source leaves out."""
    keyed = specification.keyed_table
    applied = [source.name for _, source in sources if source.truncate == "apply"]
    if applied and (keyed is None or not keyed.has_truncations):
        way = "select it too" if keyed is not None else "name the key of the table in keys"
        raise PipelineError(
            f"topic({applied[0]!r}, truncate='apply') marks the events that truncate the table in "
            f"the column truncation, and only a table with keys that gets it applies them: {way}"
        )
    held = [source for _, source in sources if source.is_debezium and source.truncate != "apply"]
    if held and specification.apply_as_truncates is not None:
        raise PipelineError(
            f"topic({held[0].name!r}, truncate={held[0].truncate!r}) gives no event that truncates "
            "the table: write truncate='apply' there, and select the column truncation, instead of "
            "apply_as_truncates"
        )
    if keyed is not None and keyed.has_truncations:
        check_one_topic(keyed, topics_read(specification.frame))


def _check_results(specification: Specification, sink: Sink, start: Start) -> None:
    """Refuse to begin results again in a table that has some: the new ones begin at nothing."""
    if start.newest or start.after:
        raise PipelineError(
            f"The results in {sink.name} continue from the state in the checkpoint that wrote "
            f"them, and {specification.checkpoint} has none of it: use that checkpoint, or a new "
            "table to compute them from the beginning of the topic"
        )


def _check_expectations(specification: Specification, sink: Sink) -> None:
    """Refuse conditions that cannot be asked, and to keep rows where no target keeps them."""
    asked = specification.expectations
    if asked.conditions and asked.otherwise == "reject" and not sink.capabilities.keeps_rejects:
        raise PipelineError(
            f"expect keeps rows that do not fulfil it beside the target, and {sink.name} has no "
            "such place: write on_unexpected='drop' or 'stop'"
        )


def _check_loop(sink: Sink, topics: Mapping[str, TopicState]) -> None:
    """Refuse a query that would read what it writes."""
    read = topics.get(sink.short_name) if sink.capabilities.is_shared else None
    if read is not None and read.topic_id == sink.table_id():
        raise PipelineError(
            f"The query reads topic {read.name!r} and would write to it without end: choose "
            "another topic"
        )


def key_notices(keyed: KeyedTable | None) -> list[str]:
    """Return what a user of a table with keys should know, a line each."""
    return [] if keyed is None else keyed.notices()


def _check_dead_letters(name: str | None, sources: tuple[tuple[int, Source], ...]) -> None:
    """Refuse a topic for rejected rows that is not there, or that the query reads itself."""
    if name is None:
        return
    if not sources:
        raise PipelineError(
            f"dead_letters={name!r} is a topic beside the one that is read, and the frame reads no "
            "topic(): leave it out"
        )
    if name in [source.name for _, source in sources]:
        raise PipelineError(
            f"dead_letters={name!r} is the topic that the query reads: it would read its own "
            "rejected rows. Name another topic"
        )
    look_up(sources[0][1].kafka, [name])


def check_group(specification: Specification, sources: tuple[tuple[int, Source], ...]) -> None:
    """Refuse a group without a topic that is read."""
    if specification.group is not None and not sources:
        raise PipelineError(
            f"group={specification.group!r} is kept on the brokers of the frame's topic, and the "
            "frame reads no topic(): leave out group"
        )


def look_up_topics(
    sources: tuple[tuple[int, Source], ...],
) -> tuple[str, dict[str, TopicState]]:
    """Return the cluster's id (several: joined) and the state of each topic, from the brokers.

    Raises PipelineError: brokers that do not answer, a topic that does not exist.
    """
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
                    "cannot distinguish: use a separate query for each"
                )
            topics[name] = topic
    return ",".join(clusters), topics


def check_path(specification: Specification, checkpoint: Checkpoint, sink: Sink) -> None:
    """Refuse a checkpoint among the table's files, and one that is a file."""
    path = checkpoint.files.location
    for folder in sink.folders:
        table = folder.rstrip("/")
        inside = path.removeprefix(table + "/")
        if path == table or (inside != path and not inside.startswith("_")):
            raise PipelineError(
                f"The checkpoint {specification.checkpoint} lies inside the table {sink.name}: "
                "what cleans up there, such as Delta's VACUUM, would delete it. Give it a folder "
                "of its own, beside the table"
            )
    if checkpoint.files.is_file():
        raise PipelineError(
            f"The checkpoint {specification.checkpoint} is a file: give the name of a folder"
        )


def identity_of(checkpoint: Checkpoint) -> Identity | None:
    return IDENTITY_DOCUMENT.read(checkpoint.files)


def _where(
    specification: Specification,
    sink: Sink,
    checkpoint: Checkpoint,
    identity: Identity | None,
    sources: tuple[tuple[int, Source], ...],
    cluster: str,
    topics: dict[str, TopicState],
    notices: list[str],
) -> tuple[Start, Replacing | None]:
    """Return where a new query starts, and the move that makes room for it.

    Without offsets in it the query continues from its checkpoint.
    """
    path = str(specification.checkpoint)
    replacing = identity.replacing if identity else None
    is_new = replacing is None and checkpoint.planned() is None
    if not is_new:
        known = replacing.starting if replacing else checkpoint.begins()
        if wrong := changes.wrong_source(identity, path, cluster, list(topics), known):
            raise PipelineError(wrong)
        notices += check_zone(specification, identity)
        _check_table(specification, sink, identity)
    next_offsets = (
        replacing.starting
        if replacing
        else next_of(specification, sink, checkpoint, identity, len(sources), notices)
    )
    if is_new:
        wanted = [source for _, source in sources]
        return first_offsets(specification.on_lost, sink, wanted, cluster, topics), None
    starting = without_lost(
        specification, checkpoint, identity, sources, topics, next_offsets, notices
    )
    _check_partitions(sink, identity, topics, next_offsets)
    start = Start(next_offsets if replacing else {})
    if identity is not None:
        start.after, start.newest, start.since = identity.after, identity.newest, identity.since
    if starting is not None:
        start.offsets = starting
        if sink.capabilities.in_parts and checkpoint.begun_ms() is not None:
            notices.append(
                "The last batch was cut off: what is written of it is written again by the new "
                "query"
            )
        if replacing is None:
            check_created_again(sink, identity, topics)
        if not sink.capabilities.is_shared:
            _continue_former(start, sink, identity, checkpoint.query_id(), topics)
        replacing = plan_move(specification, checkpoint, replacing, starting, notices)
    return start, replacing


def _continue_former(
    start: Start, sink: Sink, identity: Identity | None, former: str, topics: Iterable[str]
) -> None:
    """Note that a new query continues the one that is moved away, and what the target has now."""
    start.after = tuple(dict.fromkeys((*start.after, *([former] if former else []))))
    written = sink.held(former).batch if former else None
    if identity is None or not former or written is not None:
        start.since = sink.newest_commit()
        start.newest = newest_in(sink, topics)
        if written is not None:
            start.newest[FORMER] = (former, written)


def _check_partitions(
    sink: Sink,
    identity: Identity | None,
    topics: Mapping[str, TopicState],
    next_offsets: Offsets,
) -> None:
    """Refuse a topic that has more partitions than before, where a key must stay in its own."""
    if sink.keyed is None or not sink.keyed.forgets_positions:
        return
    for name, state in topics.items():
        is_same = identity is None or identity.topics.get(name) == state.topic_id
        known = next_offsets.get(name) if is_same else None
        if known and (wrong := changes.more_partitions(name, known, state.latest)):
            raise PipelineError(wrong)


def next_of(
    specification: Specification,
    sink: Sink,
    checkpoint: Checkpoint,
    identity: Identity | None,
    sources: int,
    notices: list[str],
) -> Offsets:
    """Return the offsets that a query continues from, which its target agrees with.

    `sources`: how many topics the query reads. `notices` gets what the user should know. Raises
    PipelineError where the checkpoint or the target was set back.
    """
    query_id, in_parts = checkpoint.query_id(), sink.capabilities.in_parts
    if not query_id:
        return {}
    if in_parts and not DeliveryGuarantee(specification.delivery).doubles_nothing:
        return checkpoint.begins()  # it keeps no marks of its batches
    held = comparable(sink.held(query_id), checkpoint, sources)
    if in_parts:
        pass  # marks may be gone, and a part without rows has none
    elif identity is None:
        # From before checkpoints kept their identity, or Spark's own job: it wrote exactly once,
        # and no more is known.
        held = replace(held, is_complete=held.batch is None)
    elif identity.delivery != DeliveryGuarantee.AT_LEAST_ONCE:
        held = replace(held, is_complete=True)  # its number is kept with the rows
    else:
        held = replace(held, is_twice=False)  # as it may be
    path = str(specification.checkpoint)
    # At-most-once writes no row of a batch again, and at-least-once may.
    is_once = DeliveryGuarantee(specification.delivery) is DeliveryGuarantee.EXACTLY_ONCE
    planned = replace(
        checkpoint.plans(path),
        promised=checkpoint.promised(query_id),
        begun_ms=checkpoint.begun_ms() if is_once else None,
    )
    answer = decide(planned, held)
    if isinstance(answer, Refuse):
        raise PipelineError(answer.sentence)
    if said := notice(planned, held):
        notices.append(said)
    return checkpoint.begins(is_delivered=isinstance(answer, Skip) and not in_parts)


def without_lost(
    specification: Specification,
    checkpoint: Checkpoint,
    identity: Identity | None,
    sources: tuple[tuple[int, Source], ...],
    topics: Mapping[str, TopicState],
    next_offsets: Offsets,
    notices: list[str],
) -> Offsets | None:
    """Return where to continue without the records that are lost, None where none are.

    Raises PipelineError where on_lost="skip" is not chosen, or cannot be used.
    """
    now = {name: partitions_now(state) for name, state in topics.items()}
    lost = changes.losses(identity, next_offsets, now)
    if not lost:
        return None
    if specification.on_lost == "skip" and checkpoint.count_sources() > len(sources):
        raise PipelineError(
            f"{lost[0].sentence}. on_lost='skip' cannot be used here: the frame also reads streams "
            "that are not topic()'s, and they would start again from their beginning"
        )
    starting = resolve(lost, specification.on_lost, next_offsets)
    notices += [loss.sentence + "; on_lost='skip' continues without them" for loss in lost]
    return starting


def plan_move(
    specification: Specification,
    checkpoint: Checkpoint,
    replacing: Replacing | None,
    starting: Offsets,
    notices: list[str],
) -> Replacing:
    """Return the move of a query's state, so that a new one begins; `replacing`: one cut off."""
    number = replacing.number if replacing else checkpoint.next_replaced()
    notices.append(
        f"The state of the query in {specification.checkpoint} is moved to replaced-{number}: a "
        "new query begins, and a stateful query loses its state"
    )
    return Replacing(number, starting)


def resolve(lost: list[changes.Loss], on_lost: str, next_offsets: Offsets) -> Offsets:
    """Return where to continue without what is lost. Raises PipelineError for on_lost="stop"."""
    if on_lost == "stop":
        raise PipelineError(
            f"{lost[0].sentence}. Write on_lost='skip' to continue without them, or use a new "
            "checkpoint and a new table"
        )
    return next_offsets | {loss.topic: loss.continue_at for loss in lost}


def partitions_now(state: TopicState) -> changes.Partitions:
    return changes.Partitions(state.topic_id, state.earliest, state.ends)


def comparable(held: Held, checkpoint: Checkpoint, sources: int) -> Held:
    """Return what a target holds, as far as the checkpoint's offsets can be compared with it.

    A digest is one of topics; the checkpoint also has the offsets of other streams that the query
    reads.
    """
    has_others = isinstance(held.ends, str) and checkpoint.count_sources() > sources
    return replace(held, ends=None) if has_others else held


def check_again(checked: Plan, sink: Sink) -> None:
    """Check before the query is started again that the table is the one, and what it has.

    Raises PipelineError.
    """
    checkpoint, identity = checked.checkpoint, identity_of(checked.checkpoint)
    sink.forget()
    _check_table(checked.specification, sink, identity)
    next_of(checked.specification, sink, checkpoint, identity, len(checked.sources), [])


def _check_table(specification: Specification, sink: Sink, identity: Identity | None) -> None:
    """Refuse a checkpoint of another table, or of other keys."""
    path = str(specification.checkpoint)
    if wrong := sink.wrong_owner(identity, path):
        raise PipelineError(wrong)
    if wrong := changes.wrong_keys(identity, path, sink.name, specification.key_columns):
        raise PipelineError(wrong)
