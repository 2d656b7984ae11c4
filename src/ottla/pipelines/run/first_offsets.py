"""Where a query with a new checkpoint starts: as asked, or where the table ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint.changes import Partitions, losses, more_partitions
from ottla.pipelines.checkpoint.identity import Identity, Offsets
from ottla.pipelines.checkpoint.next_batch import hole, shown
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.rejects.pending import PendingReject
from ottla.pipelines.rejects.read_again import whole_part
from ottla.pipelines.source.starting_offsets import starting_offsets
from ottla.pipelines.target.commit_metadata import (
    CommitMetadata,
    is_of_query,
    latest_of_topics,
    side_by_side,
)

if TYPE_CHECKING:
    from ottla.pipelines.kafka.brokers import TopicState
    from ottla.pipelines.source.source import Source
    from ottla.pipelines.target.port import Sink


FORMER: Final = ""
"""In `newest`: the query that was moved away, and its last batch."""


@dataclass
class Start:
    """The first offsets of each topic, what the user should know, and rejected rows to look for.

    `due`: the last batches of the table whose rejected rows may not be written. `after`: the
    queries that the new one continues. `newest`: the query and the batch of the newest commit of
    each topic in the table. `since`: the newest commit of all, which was looked up before.
    """

    offsets: Offsets = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    due: list[PendingReject] = field(default_factory=list)
    after: tuple[str, ...] = field(default=(), compare=False)
    newest: dict[str, tuple[str, int]] | None = field(default=None, compare=False)
    since: str | None = field(default=None, compare=False)


def first_offsets(
    on_lost: str,
    sink: Sink,
    sources: Iterable[Source],
    cluster: str,
    topics: Mapping[str, TopicState],
) -> Start:
    """Return where a query with a new checkpoint starts.

    Raises PipelineError where the table holds the topic and the caller did not say where to
    continue, or where the records that follow the table's are lost.
    """
    start = Start()
    wanted = list(sources)
    if not wanted:
        sink.check_start("", continues=False)
    if not sink.capabilities.is_shared:
        start.since = sink.newest_commit()
    held = _held(sink, [source.name for source in wanted])
    if not sink.capabilities.is_shared:
        start.newest = newest_of(held)
    for source in wanted:
        state = topics[source.name]
        last = held.get(source.name)
        if last is None and source.starting in ("earliest", "latest", "table"):
            _check_known(sink, source.name)
        if source.starting == "table":
            offsets, notice = _from_table(on_lost, sink, state, cluster, last)
            start.notices += [notice, *_rejected_again(sink, state, offsets)]
            start.due += _due(source, last)
            if last is not None:
                start.after = tuple(dict.fromkeys((*start.after, *last.after, last.query_id)))
        elif last is not None and source.starting in ("earliest", "latest"):
            raise PipelineError(_holds_already(sink, source.name))
        else:
            if last is None:
                sink.check_start(source.name, continues=False)
            offsets = starting_offsets(source, state)
            _check_repeat(sink, state, last, offsets)
        start.offsets[source.name] = offsets
    return start


def newest_in(sink: Sink, names: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Return the query and the batch of the newest commit of each topic in the table."""
    return newest_of(_held(sink, list(names)))


def newest_of(held: Mapping[str, CommitMetadata]) -> dict[str, tuple[str, int]]:
    return {name: (last.query_id, last.batch) for name, last in held.items()}


def check_created_again(
    sink: Sink, identity: Identity | None, topics: Mapping[str, TopicState]
) -> None:
    """Refuse to begin with a topic that was created again where the table has it already, by a
    query with another checkpoint. Raises PipelineError.
    """
    for name, last in _held(sink, list(topics)).items():
        now = topics[name].topic_id
        if last.topic_ids.get(name) == now and identity and identity.topics.get(name) != now:
            raise PipelineError(_holds_already(sink, name))


def check_new(
    sink: Sink,
    query_id: str,
    topics: Iterable[str],
    newest: Mapping[str, tuple[str, int]],
    since: str | None = None,
) -> None:
    """Refuse to write the first batch of a query where another one has written since it was new.

    `newest` and `since` are those of the checkpoint's record. Raises PipelineError.
    """
    if sink.held(query_id).batch is not None:
        return  # the first batch is there
    former, written = newest.get(FORMER, ("", -1))
    has_grown = bool(former) and sink.held(former).batch != written
    now = newest_in(sink, topics)
    for name in topics:
        if has_grown or now.get(name) != newest.get(name):
            raise PipelineError(_holds_already(sink, name))
        if name in now:
            continue  # all commits after that one are known
        if not _knows_since(sink, since):
            raise PipelineError(
                f"{_not_known(sink, name)}. Use a new checkpoint with explicit offsets: "
                "topic(..., starting={0: 4711})"
            )
        if not former:
            sink.check_start(name, continues=False)  # the target may not keep who wrote to it


def check_first(
    sink: Sink,
    query_id: str,
    topics: Iterable[str],
    newest: Mapping[str, tuple[str, int]],
    since: str | None = None,
) -> None:
    """Check after the first batch of a query that no other one has written meanwhile.

    `newest` and `since` as for `check_new`. Raises PipelineError; the batch is in the table.
    """
    names = list(topics)
    others = (text for text in sink.metadata() if not is_of_query(text, query_id))
    now = newest_of(latest_of_topics(others, names)) if names else {}
    former, written = newest.get(FORMER, ("", -1))
    has_grown = bool(former) and sink.held(former).batch != written
    for name in names:
        if has_grown or now.get(name) != newest.get(name):
            raise PipelineError(
                f"Another query has written topic {name!r} to the table {sink.name} while the "
                "first batch of this one was written: rows may be there twice, and to go on would "
                "write rows twice. Use the other query's checkpoint, or a new table"
            )
        if name not in now and not _knows_since(sink, since):
            raise PipelineError(
                f"{_not_known(sink, name)}: the first batch of this query was written before that "
                "was noticed, and rows may be there twice"
            )


def _knows_since(sink: Sink, since: str | None) -> bool:
    """Tell whether a target shows all commits since a query was new, or nothing is noted."""
    return since is None or sink.knows_since(since)


def _not_known(sink: Sink, name: str) -> str:
    return (
        f"Whether another query has written topic {name!r} to the table {sink.name} since this one "
        "began is not known: the table does not show all commits since then"
    )


def _check_known(sink: Sink, name: str) -> None:
    """Refuse to begin with a topic that the target may hold, though no commit names it.

    Raises PipelineError.
    """
    if why := sink.forgets():
        raise PipelineError(
            f"Whether the table {sink.name} holds topic {name!r} is not known: {why}. Give "
            "explicit offsets: topic(..., starting={0: 4711})"
        )


def _holds_already(sink: Sink, name: str) -> str:
    return (
        f"The table {sink.name} holds topic {name!r} already, written by another checkpoint: "
        "starting again would double or miss rows. Write topic(..., starting='table') with a new "
        "checkpoint to continue where the table ends, or give explicit offsets"
    )


def _check_repeat(
    sink: Sink, state: TopicState, last: CommitMetadata | None, offsets: dict[int, int]
) -> None:
    """Refuse to read records again that a table with keys has, and could not tell from newer ones.

    With `order_by` an older record is known as such.
    """
    if sink.keyed is None or sink.keyed.order_by is not None or last is None:
        return
    if last.topic_ids[state.name] != state.topic_id:
        return
    ends = last.offsets[state.name]
    again = {p: at for p, at in offsets.items() if at < ends.get(p, 0)}
    if again:
        partition, offset = min(again.items())
        raise PipelineError(
            f"The table {sink.name} holds the partition {partition} of {state.name!r} up to "
            f"offset {ends[partition]}, and starting= gives {offset}: older records would "
            "replace newer rows. Write topic(..., starting='table'), name the column that orders "
            "the records in order_by, or use a new table"
        )


def _rejected_again(sink: Sink, state: TopicState, offsets: Mapping[int, int]) -> list[str]:
    """Return which records are read again whose rejected rows stay beside a table that was set
    back."""
    last = latest_of_topics(sink.rejected_metadata(), [state.name]).get(state.name)
    if last is None or last.topic_ids[state.name] != state.topic_id:
        return []
    ends = last.offsets[state.name]
    again = {p: at for p, at in offsets.items() if at < ends.get(p, at)}
    if not again:
        return []
    return [
        f"The records of topic {state.name!r} from {shown(again)} on are read again, up to "
        f"{shown({p: ends[p] for p in again})}: those that were rejected are in "
        f"{sink.short_name}_rejected already, and will be there twice. Where that matters, delete "
        "them there"
    ]


def _due(source: Source, last: CommitMetadata | None) -> list[PendingReject]:
    """Return the end of the table for which nobody knows whether its rejected rows are written.

    A kill between the commit of a batch and the commit of its rejected rows leaves such an end.
    """
    if last is None or not source.can_reject or source.name not in last.rejects_from:
        return []
    first, end = last.rejects_from[source.name], last.offsets[source.name]
    part = whole_part(source, last.topic_ids[source.name], first, end)
    return [PendingReject(last.query_id, last.batch, True, last.text(), (part,))]


def _held(sink: Sink, names: list[str]) -> dict[str, CommitMetadata]:
    """Return the last commit of each topic in the table."""
    return latest_of_topics(sink.metadata(), names) if names else {}


def _check_one_writer(sink: Sink, name: str, last: CommitMetadata) -> None:
    """Refuse to continue one of two queries that wrote a topic at the same time, and end otherwise.

    Explicit offsets allow that, for example for different rows of the topic. Raises PipelineError.
    """
    other = side_by_side(sink.metadata(), name, last)
    if other is not None:
        raise PipelineError(
            f"Two queries have written topic {name!r} to the table {sink.name} at the same time: "
            f"{last.query} ({last.query_id}) up to {shown(last.offsets[name])}, and {other.query} "
            f"({other.query_id}) up to {shown(other.offsets[name])}. Which of them is to be "
            "continued is not known. Give explicit offsets: topic(..., starting={0: 4711})"
        )


def _from_table(
    on_lost: str,
    sink: Sink,
    state: TopicState,
    cluster: str,
    last: CommitMetadata | None,
) -> tuple[dict[int, int], str]:
    name = state.name
    if last is None:
        sink.check_start(name, continues=True)
        return dict(state.earliest), (
            f"No commit of the table {sink.name} names topic {name!r}: it is read from its "
            "beginning"
        )
    if last.cluster != cluster:
        raise PipelineError(
            f"The table {sink.name} holds topic {name!r} of the cluster {last.cluster}, and "
            f"bootstrap_servers leads to {cluster}. Use the brokers of that cluster, or explicit "
            "offsets"
        )
    if wrong := hole(sink.held(last.query_id)):
        raise PipelineError(wrong)
    _check_one_writer(sink, name, last)
    identity = Identity(cluster, {name: last.topic_ids[name]}, "", "", "")
    now = Partitions(state.topic_id, state.earliest, state.ends)
    offsets = {name: last.offsets[name]}
    lost = losses(identity, offsets, {name: now})
    if lost and on_lost == "stop":
        raise PipelineError(
            f"{lost[0].sentence.replace('the checkpoint', 'the table')}. Write on_lost='skip' to "
            "continue without them, or use a new table"
        )
    is_same = last.topic_ids[name] == state.topic_id
    if is_same and sink.keyed is not None and sink.keyed.forgets_positions:
        wrong = more_partitions(name, last.offsets[name], state.latest)
        if wrong is not None:
            raise PipelineError(wrong)
    if lost:
        return lost[0].continue_at, lost[0].sentence + "; on_lost='skip' continues without them"
    return offsets[name], (
        f"Topic {name!r} continues where the table {sink.name} ends: at batch {last.batch} of the "
        f"query {last.query} ({last.query_id})"
    )
