"""`plan`: everything about a pipeline that can be checked before Spark runs it.

A specification is what the caller asked for. A plan is a specification that fits the brokers,
topics, table and checkpoint that exist. Planning changes nothing; `run.start` carries the plan out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ottla.pipelines.checkpoint import changes
from ottla.pipelines.checkpoint.checkpoint import Checkpoint, Position
from ottla.pipelines.checkpoint.identity import Identity, Offsets, Replacing
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import TopicState, look_up
from ottla.pipelines.rejects.pending import PendingReject
from ottla.pipelines.run import topic_twice
from ottla.pipelines.run.compacted import forgotten_deletions
from ottla.pipelines.run.first_offsets import (
    Start,
    check_created_again,
    first_offsets,
)
from ottla.pipelines.run.first_start import begun_before
from ottla.pipelines.run.known_ids import check_ids
from ottla.pipelines.run.next_offsets import (
    SKIPPED,
    check_partitions,
    check_table,
    continue_former,
    identity_of,
    next_of,
    partitions_now,
    plan_move,
    resolve,
    without_lost,
)
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.run.time_zone import check_zone
from ottla.pipelines.run.truncations import check_alone, check_one_partition, check_one_topic
from ottla.pipelines.run.value_settings import check_settings
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
            self.specification.value_settings,
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
    topic_twice.check_rejected(source for _, source in sources)
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
    check_ids(checkpoint.files, (source for _, source in sources))
    position = checkpoint.position()
    identity = identity_of(checkpoint)
    start, replacing = _where(
        specification, sink, checkpoint, identity, sources, cluster, topics, notices
    )
    if specification.mode == "update" and start.offsets:
        _check_results(specification, sink, start)
    if keyed is not None and keyed.has_tombstones and not start.offsets:
        notices += _forgotten(sources, checkpoint, sink)
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


def _forgotten(
    sources: tuple[tuple[int, Source], ...], checkpoint: Checkpoint, sink: Sink
) -> list[str]:
    """Return a line for each compacted topic that may have forgotten deletions."""
    begins, last_ms, now_ms = checkpoint.begins(), checkpoint.last_ms(), int(time.time() * 1_000)
    found = (
        forgotten_deletions(
            source.kafka, source.name, begins.get(source.name, {}), last_ms, now_ms, sink.name
        )
        for _, source in sources
    )
    return [said for said in found if said]


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
        by_number = [(number, source.name) for number, source in sources]
        kept = [] if replacing else checkpoint.topics_by_number()
        if wrong := changes.wrong_order(path, kept, by_number):
            raise PipelineError(wrong)
        notices += check_zone(specification, identity)
        check_settings(specification, identity)
        check_table(specification, sink, identity)
    next_offsets = (
        replacing.starting
        if replacing
        else next_of(specification, sink, checkpoint, identity, len(sources), notices)
    )
    if is_new:
        wanted = [source for _, source in sources]
        if any(source.starting == "table" for source in wanted):
            topic_twice.check_start(wanted, "starting='table'")
        start = first_offsets(specification.on_lost, sink, wanted, cluster, topics)
        _begin_as_before(specification, start, checkpoint, identity, wanted, topics)
        return start, None
    starting = without_lost(
        specification, checkpoint, identity, sources, topics, next_offsets, notices
    )
    check_partitions(sink, identity, topics, next_offsets)
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
            continue_former(start, sink, identity, checkpoint.query_id(), topics)
        replacing = plan_move(specification, checkpoint, replacing, starting, notices)
    return start, replacing


def _begin_as_before(
    specification: Specification,
    start: Start,
    checkpoint: Checkpoint,
    identity: Identity | None,
    sources: list[Source],
    topics: Mapping[str, TopicState],
) -> None:
    """Begin at the end that topics had at the first start, where that has no batch yet.

    Raises PipelineError where records since then are lost.
    """
    now = {name: partitions_now(state) for name, state in topics.items()}
    found, notices, lost = begun_before(sources, identity, checkpoint.started(), now)
    start.offsets |= resolve(lost, specification.on_lost, found) if lost else found
    start.notices += notices
    start.notices += [loss.sentence + SKIPPED for loss in lost]


def check_again(checked: Plan, sink: Sink) -> None:
    """Check before the query is started again that the table is the one, and what it has.

    Raises PipelineError.
    """
    checkpoint, identity = checked.checkpoint, identity_of(checked.checkpoint)
    sink.forget()
    check_table(checked.specification, sink, identity)
    next_of(checked.specification, sink, checkpoint, identity, len(checked.sources), [])
