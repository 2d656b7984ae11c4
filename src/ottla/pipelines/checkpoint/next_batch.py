"""Whether a checkpoint and its target agree on the next batch: one rule for each start, each batch
that a target skips, and all targets.

    The offsets in the newest commit that is still in the target are the start of the next batch.

Spark numbers the batches of a query, and a target knows a batch by its number. If one of the two is
set back (a backup that is restored, a copied folder, a table's earlier version), other rows get the
same number: they would be skipped, or written twice. So numbers and offsets are compared, and what
does not fit is refused. That is enough by induction: a batch that is written follows one that was
compared.

Pure. It imports plain words alone: the tasks that write a topic have it on Spark's executors, too,
by value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ottla.pipelines.failures.marks import SET_BACK

Ends: TypeAlias = "Mapping[str, Mapping[int, int]] | str"
"""Next offsets by topic and partition, or their digest."""

DIGEST_LETTERS = 16
"""Of SHA-256: 64 bits tell two batches of one number apart."""


@dataclass(frozen=True)
class Planned:
    """The batch that a checkpoint comes to.

    `checkpoint` names the checkpoint. `begins` and `ends`: the offsets of the batch, None where
    they are not known; a batch that is not planned has no end yet. `promised`: the last batch that
    the target must have, None where the delivery does not promise that. `is_skipped`: the target
    says that it has the batch. `begun_ms`: when a batch began that was cut off and must not be
    written twice, in ms since 1970; None for others.
    """

    checkpoint: str
    number: int
    begins: Ends | None = None
    ends: Ends | None = None
    promised: int | None = None
    is_skipped: bool = False
    begun_ms: int | None = None


@dataclass(frozen=True)
class Held:
    """What a target has of a query.

    `name` is the target's. `batch`: the newest one that is still in it, None where none is known;
    `ends`: where that ends, None where that is not known. `is_complete`: the target would know of a
    newer batch, or of any. `taken_out`: batches that were taken out again, and
    `taken_out_by` what does that, such as Delta's RESTORE TABLE. `continued_by`:
    the query that goes on where this one ended, with another checkpoint; empty for none. `kept_in`:
    what was set back where batches are missing, and `way_out` how to go on then. `since_ms`: the
    target knows of no commit before then, in ms since 1970, though it had some; None where it is
    not known to forget. `forgets`: why it does not know of a commit, as a part of a sentence.
    `unsure`: what others may have done after that batch, which no commit shows; as `forgets`.
    `unsure_before`: the same before that batch, which counts where its run did not come to compare.
    `is_twice`: two commits are of that batch, as two runs wrote it.
    """

    name: str
    batch: int | None = None
    ends: Ends | None = None
    is_complete: bool = False
    taken_out: tuple[int, ...] = ()
    taken_out_by: str = ""
    continued_by: str = ""
    kept_in: str = "the table"
    way_out: str = (
        "Use a new checkpoint with topic(..., starting='table') to continue where the table ends"
    )
    since_ms: int | None = None
    forgets: str = ""
    unsure: str = ""
    unsure_before: str = ""
    is_twice: bool = False


@dataclass(frozen=True)
class Write:
    """The target has the batches before this one: it is written."""


@dataclass(frozen=True)
class Skip:
    """The target has this very batch: it is not written again."""


@dataclass(frozen=True)
class Refuse:
    """Rows would be lost or doubled: why, and what to do."""

    sentence: str


Answer: TypeAlias = Write | Skip | Refuse


def decide(planned: Planned, held: Held) -> Answer:
    """Return what becomes of the batch that a checkpoint comes to, by what its target has."""
    number, last = planned.number, held.batch
    if held.continued_by:
        return Refuse(_continued(planned.checkpoint, held))
    if held.taken_out:
        return Refuse(_restored(held))
    if last is not None and (last > number or (last == number and planned.ends is None)):
        return Refuse(_older(planned, held))
    if last is not None and held.unsure:
        return Refuse(_unsure(held))
    if held.is_twice and last in (number - 1, number):
        return Refuse(_twice(held))
    if last is not None and last == number:
        return _decide_there(planned, held)
    is_behind = last is None or (planned.promised is not None and last < planned.promised)
    if planned.promised is not None and held.is_complete and is_behind:
        return Refuse(_missing(planned.checkpoint, planned.promised, held))
    if last is None and _is_before(planned.begun_ms, held.since_ms):
        return Refuse(_forgotten(planned, held))
    if last is not None and last == number - 1 and _differ(held.ends, planned.begins):
        return Refuse(_other(planned.checkpoint, held, planned.begins))
    if planned.is_skipped:
        # Where the target does not say what it has, its word that it has the batch stands.
        return Skip() if last is None else Refuse(_missing(planned.checkpoint, number, held))
    return Write()


def _decide_there(planned: Planned, held: Held) -> Answer:
    """Return what becomes of a batch whose number is that of the target's newest one."""
    if _differ(held.ends, planned.ends):
        return Refuse(_other(planned.checkpoint, held, planned.ends))
    if held.ends is None and held.forgets:
        return Refuse(_end_forgotten(planned, held))
    return Refuse(_unsure_before(held)) if held.unsure_before else Skip()


def notice(planned: Planned, held: Held) -> str | None:
    """Return what a user should know of a batch that is written or skipped, None for nothing.

    The target may know of the batch before it the number alone, which is that of the checkpoint.
    """
    if held.batch is None or held.batch != planned.number - 1:
        return None
    if held.ends is not None or not held.forgets:
        return None
    return (
        f"{_capital(held.name)} has batch {held.batch} of this query, as the checkpoint "
        f"{planned.checkpoint}, but no commit says where that ends: {held.forgets}. If somebody "
        f"has set back {held.kept_in} since then, that is not noticed"
    )


def hole(held: Held) -> str | None:
    """Return why a target cannot be continued where a query ended in it, None where it can.

    A query that wrote on after that left a hole before its newest batch.
    """
    if held.batch is not None and held.unsure:
        return _unsure(held)
    if held.batch is None or not any(batch < held.batch for batch in held.taken_out):
        return None
    return (
        f"{_capital(held.name)} was set back by {held.taken_out_by}, which took out "
        f"{_which(held.taken_out)} of a query, and has its batch {held.batch} after that: the rows "
        "between are missing. Bring the table back to where that left it, and start again"
    )


def digest(offsets: Mapping[str, Mapping[int, int]]) -> str:
    """Return a digest of offsets, for targets that have no room for them."""
    text = json.dumps(offsets, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LETTERS]


def _digest_of(ends: Ends) -> str:
    return ends if isinstance(ends, str) else digest(ends)


def set_back(checkpoint: str, found: str) -> str:
    """Return that a checkpoint is older than its target, by what was found."""
    return SET_BACK.format(checkpoint=checkpoint, found=found)


def shown(offsets: Mapping[int, int]) -> str:
    """Return offsets for a person: the first few partitions."""
    first = [f"offset {offsets[p]} in partition {p}" for p in sorted(offsets)[:3]]
    return ", ".join(first) + (" ..." if len(offsets) > 3 else "")


def _differ(held: Ends | None, here: Ends | None) -> bool:
    """Tell whether two ends are known to differ.

    The target's commits name the topics of the query; a checkpoint may stand in other sources, too.
    """
    if held is None or here is None or "" in (held, here):
        return False  # a mark of a version that kept no digest is empty
    if isinstance(held, str) or isinstance(here, str):
        return _digest_of(held) != _digest_of(here)
    return any(here.get(topic) != offsets for topic, offsets in held.items())


def _is_before(begun_ms: int | None, since_ms: int | None) -> bool:
    return begun_ms is not None and since_ms is not None and begun_ms < since_ms


def _which(batches: tuple[int, ...]) -> str:
    first, last = min(batches), max(batches)
    return f"batch {first}" if first == last else f"the batches {first} to {last}"


def _continued(checkpoint: str, held: Held) -> str:
    return (
        f"{_capital(held.name)} was continued by the query {held.continued_by} with another "
        f"checkpoint, where the query of the checkpoint {checkpoint} ended: to go on would write "
        "rows twice. Use that checkpoint, or a new one with topic(..., starting='table')"
    )


def _restored(held: Held) -> str:
    return (
        f"{_capital(held.name)} was set back by {held.taken_out_by} and no longer has "
        f"{_which(held.taken_out)} of this query. Use a new checkpoint with topic(..., "
        "starting='table') to continue where the table ends now, or restore its newest version"
    )


def _older(planned: Planned, held: Held) -> str:
    last = planned.number if planned.ends is not None else planned.number - 1
    has = "no batch" if last < 0 else f"batches up to {last}"
    found = f"{held.name} has batch {held.batch} of this query, and the checkpoint has {has}"
    return set_back(planned.checkpoint, found)


def _other(checkpoint: str, held: Held, here: Ends | None) -> str:
    has = f"{held.name} has batch {held.batch} of this query"
    if not isinstance(held.ends, Mapping) or not isinstance(here, Mapping):
        return set_back(checkpoint, f"{has}, and the checkpoint another batch {held.batch}")
    topic = next(each for each in sorted(held.ends) if held.ends[each] != here.get(each))
    return set_back(
        checkpoint,
        f"{has} up to {shown(held.ends[topic])} of topic {topic!r}, and the checkpoint has it up "
        f"to {shown(here.get(topic, {}))}",
    )


def _forgotten(planned: Planned, held: Held) -> str:
    return (
        f"Batch {planned.number} of the checkpoint {planned.checkpoint} was cut off, and whether "
        f"{held.name} has it is not known: {held.forgets}. Start once with "
        "delivery='at-least-once', which may write its rows twice, or use a new checkpoint with "
        "explicit offsets: topic(..., starting={0: 4711})"
    )


def _unsure(held: Held) -> str:
    return (
        f"Whether {held.name} still ends where batch {held.batch} of this query left it is not "
        f"known: {held.forgets}, and {held.unsure}. To go on could write rows twice or leave rows "
        "out. Look in the table where they end, and use a new checkpoint with explicit offsets: "
        "topic(..., starting={0: 4711})"
    )


def _twice(held: Held) -> str:
    return (
        f"{_capital(held.name)} has batch {held.batch} of this query in two commits: two runs "
        "wrote it, and rows may be there twice. Take them out once, and use a new checkpoint with "
        "topic(..., starting='table') to continue where the table ends"
    )


def _unsure_before(held: Held) -> str:
    return (
        f"A run was cut off after it had written batch {held.batch} to {held.name}. Whether "
        "another query has written the same rows is not known: "
        f"{held.forgets}, and {held.unsure_before}. If it has, rows may be there twice. Look in "
        "the table where they end, and use a new checkpoint with explicit offsets: topic(..., "
        "starting={0: 4711})"
    )


def _end_forgotten(planned: Planned, held: Held) -> str:
    return (
        f"{_capital(held.name)} has a batch {held.batch} of this query, and whether it is that of "
        f"the checkpoint {planned.checkpoint} is not known: {held.forgets}. A copy of the "
        "checkpoint may have written other rows under this number. Look in the table where they "
        "end, and use a new checkpoint with explicit offsets: topic(..., starting={0: 4711})"
    )


def _missing(checkpoint: str, promised: int, held: Held) -> str:
    if held.batch is None and held.since_ms is not None:
        return (
            f"The checkpoint {checkpoint} has delivered batches, and {held.name} shows none of "
            f"this query: {held.forgets}, or it was set back or made again. If it has their rows, "
            "continue with a new checkpoint and explicit offsets: topic(..., starting={0: 4711}); "
            "otherwise start from the beginning of the topic with a new checkpoint"
        )
    if held.batch is None:
        return (
            f"The checkpoint {checkpoint} has delivered batches that {held.name} does not hold: it "
            f"belongs to another target, or {held.kept_in} was set back or made again. Use a new "
            "checkpoint to start from the beginning of the topic"
        )
    return (
        f"{_capital(held.name)} has the batches up to {held.batch} of this query, and the "
        f"checkpoint {checkpoint} those up to {promised}: {held.kept_in} was set back, for example "
        f"by a backup that was restored. {held.way_out}"
    )


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
