"""What changed around a checkpoint since its last run, found before Spark logs an offset.

Spark itself compares nothing but offsets: a topic that was deleted and created again is read from
where the old one ended, and a wrong topic is logged before it is checked. Pure: the caller passes
all that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.pipelines.checkpoint.identity import Identity, Offsets
from ottla.pipelines.checkpoint.next_batch import shown


@dataclass(frozen=True, slots=True)
class Partitions:
    """A topic as the broker has it now: its id, its first and its next offset by partition.

    `replaced`: from where on partitions are known to have other records than they had.
    """

    topic_id: str
    earliest: Mapping[int, int]
    latest: Mapping[int, int]
    replaced: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loss:
    """Records of a topic that this checkpoint can no longer read, and where it can continue."""

    sentence: str
    topic: str
    continue_at: dict[int, int]


def wrong_source(
    identity: Identity | None,
    checkpoint: str,
    cluster: str,
    read: Iterable[str],
    next_offsets: Offsets,
) -> str | None:
    """Return why this checkpoint cannot read these topics, None when it can.

    `read`: the topics of the frame; `next_offsets`: where the checkpoint continues in its own.
    """
    if identity is not None and identity.cluster != cluster:
        return (
            f"The checkpoint {checkpoint} belongs to the cluster {identity.cluster}, and "
            f"bootstrap_servers leads to {cluster}. Use the brokers of that cluster, or a new "
            "checkpoint"
        )
    # The checkpoint may also stand in topics that other sources of the frame read.
    wanted, known = set(read), set(identity.topics if identity else next_offsets)
    if wanted != known if identity else not wanted <= known:
        reads, stands = _named(wanted), _named(known)
        return (
            f"The checkpoint {checkpoint} belongs to {stands}, and the frame reads {reads}. Read "
            f"{stands}, or use a new checkpoint"
        )
    return None


def wrong_order(
    checkpoint: str, kept: Sequence[Iterable[str]], read: Iterable[tuple[int, str]]
) -> str | None:
    """Return why a frame with several sources cannot go on, None when it can.

    Spark keeps the offsets of sources by their numbers in the frame, not by their topics: those of
    one topic would be taken for another one. `kept`: the topics of each number in the checkpoint,
    none where that has no offset, or is no source of Kafka's; `read`: number and topic of each
    `topic` in the frame.
    """
    for number, name in read:
        there = set(kept[number]) if number < len(kept) else set()
        if there and there != {name}:
            return (
                f"The checkpoint {checkpoint} has {_named(there)} as source {number + 1} of its "
                f"query, and the frame reads topic {name!r} there: Spark keeps offsets by this "
                "order. Join or unite the topics in the order as before, or use a new checkpoint"
            )
    return None


def _named(topics: Iterable[str]) -> str:
    names = sorted(topics)
    return ("topic " if len(names) == 1 else "topics ") + ", ".join(map(repr, names))


def wrong_table(
    identity: Identity | None, checkpoint: str, name: str, table_id: str, location: str
) -> str | None:
    """Return why this checkpoint cannot write to this table, None when it can."""
    if identity is None or identity.table_id == table_id:
        return None
    if identity.table_location == location:
        return (
            f"The table {name} was deleted and created again since the checkpoint {checkpoint} "
            "last wrote to it: earlier rows would be missing. Use a new checkpoint to read the "
            "topic again, or starting= to choose where it begins"
        )
    return (
        f"The checkpoint {checkpoint} belongs to the table {identity.table_location}, not to "
        f"{name}. Use a new checkpoint for this table"
    )


def wrong_keys(
    identity: Identity | None, checkpoint: str, name: str, keys: tuple[str, ...]
) -> str | None:
    """Return why this checkpoint cannot write rows with these keys, None when it can.

    Rows that are in the table were matched by the former keys: a key would have several rows.
    """
    if identity is None or identity.keys is None:
        return None
    # Spark ignores the case of a column's name.
    if {name.lower() for name in identity.keys} == {name.lower() for name in keys}:
        return None
    return (
        f"The checkpoint {checkpoint} has written the table {name} with {_keys(identity.keys)}, "
        f"and this query has {_keys(keys)}. Write {_keys(identity.keys)}, or use a new checkpoint "
        "and a new table"
    )


def _keys(columns: tuple[str, ...]) -> str:
    return f"keys={list(columns)!r}" if columns else "no keys="


def more_partitions(name: str, known: Iterable[int], now: Iterable[int]) -> str | None:
    """Return why a table with keys that forgets where a deleted key lay cannot go on, None when it
    can.

    `known`: the partitions of a topic up to here; `now`: those that it has.
    """
    added = sorted(set(now) - set(known))
    if not added:
        return None
    which = "partition " if len(added) == 1 else "partitions "
    which += ", ".join(map(str, added[:3])) + (" ..." if len(added) > 3 else "")
    return (
        f"Topic {name!r} has got the {which} since the last batch: a key can now be in two "
        "partitions, whose records have no order, and a deleted key has no row that would show it, "
        "so that an older record would bring it back. Name the column that orders the records, "
        "such as order_by='timestamp'; or, where each key has stayed in its partition, use a new "
        "checkpoint and topic(..., starting={...}) with an offset for each partition"
    )


def losses(
    identity: Identity | None,
    next_offsets: Offsets,
    topics: Mapping[str, Partitions],
    planned: Offsets | None = None,
) -> list[Loss]:
    """Return what the checkpoint can no longer read of each topic, empty when nothing is lost.

    `planned`: where a batch ends that was planned and not done. Spark reads it up to there.
    """
    found = []
    for name, now in topics.items():
        at = next_offsets.get(name)
        if at is None:
            continue
        known_id = identity.topics.get(name) if identity else None
        if known_id is not None and known_id != now.topic_id:
            found.append(_recreated(name, at, now))
        elif (loss := _gone(name, at, now, (planned or {}).get(name, {}))) is not None:
            found.append(loss)
    return found


def _gone(
    name: str, at: Mapping[int, int], now: Partitions, planned: Mapping[int, int]
) -> Loss | None:
    """Return what is gone of a topic that is still the same, None where nothing is."""
    # A partition that was added is read from offset 0, and Spark refuses another first offset.
    begins = {p: at.get(p, 0) for p in {**at, **now.earliest}}
    missing = sum(max(0, now.earliest.get(p, 0) - offset) for p, offset in begins.items())
    cut = sum(max(0, offset - now.latest.get(p, 0)) for p, offset in at.items())
    cut_in = sum(max(0, offset - now.latest.get(p, 0)) for p, offset in planned.items())
    others = {p: first for p, first in now.replaced.items() if first < at.get(p, 0)}
    if others:
        sentence = replaced(name, others)
        begins |= others
    elif missing:
        sentence = (
            f"{missing} records of topic {name!r} that were not delivered yet are gone "
            "(retention or a deletion removed them)"
        )
    elif cut:
        sentence = (
            f"Topic {name!r} ends {cut} records before the offset of this checkpoint: the "
            "topic was created again, or its brokers lost records"
        )
    elif cut_in:
        sentence = (
            f"Topic {name!r} ends {cut_in} records before the end of the batch that was cut off: "
            "the topic was created again, or its brokers lost records"
        )
    else:
        return None
    continue_at = {
        p: max(min(offset, now.latest[p]), now.earliest.get(p, 0))
        for p, offset in sorted(begins.items())
        if p in now.latest
    }
    return Loss(sentence, name, continue_at)


def replaced(name: str, first: Mapping[int, int]) -> str:
    """Return that partitions have other records than those that were read, from offsets on."""
    partition = min(first)
    return (
        f"Topic {name!r} has other records than those that were delivered, from offset "
        f"{first[partition]} of partition {partition} on: its brokers lost records and gave their "
        "offsets to new ones, or a backup of them was restored"
    )


def _recreated(name: str, at: dict[int, int], now: Partitions) -> Loss:
    records = sum(now.latest[p] - now.earliest[p] for p in now.latest)
    sentence = (
        f"Topic {name!r} was deleted and created again: the checkpoint stands at "
        f"{shown(at)} of the former topic, and the new one has {records} records (some may "
        "be in the target, if it was created while the last batch was read)"
    )
    return Loss(sentence, name, dict(now.earliest))
