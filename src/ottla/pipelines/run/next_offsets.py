"""Where a query continues: from its checkpoint where the target agrees, without what is lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint import changes
from ottla.pipelines.checkpoint.identity import IDENTITY_DOCUMENT, Identity, Offsets, Replacing
from ottla.pipelines.checkpoint.next_batch import Held, Refuse, Skip, decide, notice
from ottla.pipelines.delivery import DeliveryGuarantee
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.run import topic_twice
from ottla.pipelines.run.first_offsets import FORMER, Start, newest_in
from ottla.pipelines.run.log_watch import replaced_records

if TYPE_CHECKING:
    from ottla.pipelines.checkpoint.checkpoint import Checkpoint
    from ottla.pipelines.kafka.brokers import TopicState
    from ottla.pipelines.run.specification import Specification
    from ottla.pipelines.source.source import Source
    from ottla.pipelines.target.port import Sink

SKIPPED: Final = "; on_lost='skip' continues without them"


def identity_of(checkpoint: Checkpoint) -> Identity | None:
    return IDENTITY_DOCUMENT.read(checkpoint.files)


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


def comparable(held: Held, checkpoint: Checkpoint, sources: int) -> Held:
    """Return what a target holds, as far as the checkpoint's offsets can be compared with it.

    A digest is one of topics; the checkpoint also has the offsets of other streams that the query
    reads.
    """
    has_others = isinstance(held.ends, str) and checkpoint.count_sources() > sources
    return replace(held, ends=None) if has_others else held


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
    ids = {name: state.topic_id for name, state in topics.items()}
    others = replaced_records(checkpoint.files, (source for _, source in sources), ids)
    now = {name: partitions_now(state, others.get(name)) for name, state in topics.items()}
    is_moved = identity is not None and identity.replacing is not None
    cut_off = not is_moved and checkpoint.begun_ms() is not None
    planned = checkpoint.begins(is_delivered=True) if cut_off else None
    lost = changes.losses(identity, next_offsets, now, planned)
    if not lost:
        return None
    if specification.on_lost == "skip" and checkpoint.count_sources() > len(sources):
        raise PipelineError(
            f"{lost[0].sentence}. on_lost='skip' cannot be used here: the frame also reads streams "
            "that are not topic()'s, and they would start again from their beginning"
        )
    starting = resolve(lost, specification.on_lost, next_offsets)
    topic_twice.check_start((source for _, source in sources), "on_lost='skip'")
    notices += [loss.sentence + SKIPPED for loss in lost]
    return starting


def resolve(lost: list[changes.Loss], on_lost: str, next_offsets: Offsets) -> Offsets:
    """Return where to continue without what is lost. Raises PipelineError for on_lost="stop"."""
    if on_lost == "stop":
        raise PipelineError(
            f"{lost[0].sentence}. Write on_lost='skip' to continue without them, or use a new "
            "checkpoint and a new table"
        )
    return next_offsets | {loss.topic: loss.continue_at for loss in lost}


def partitions_now(
    state: TopicState, replaced: Mapping[int, int] | None = None
) -> changes.Partitions:
    return changes.Partitions(state.topic_id, state.earliest, state.ends, replaced or {})


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


def continue_former(
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


def check_partitions(
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


def check_table(specification: Specification, sink: Sink, identity: Identity | None) -> None:
    """Refuse a checkpoint of another table, or of other keys."""
    path = str(specification.checkpoint)
    if wrong := sink.wrong_owner(identity, path):
        raise PipelineError(wrong)
    if wrong := changes.wrong_keys(identity, path, sink.name, specification.key_columns):
        raise PipelineError(wrong)
