"""What a mirror commits at the target for a partition: the next source offset, and as the commit's
metadata (JSON) from which topic of which clusters the records are, and the last of them.

{"topic_id": ID, "target_id": ID, "clusters": [ID ...], "last_record": {"end": OFFSET, "epoch": N},
 "left_out": true}

`last_record` is there if the position is not just behind that record; else the epoch is the
commit's own. `left_out` is there if so.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Origin(NamedTuple):
    """Where the records of a mirrored topic are from."""

    topic_id: str | None
    """Of the source's topic; None if its brokers have no ids (before Apache Kafka 2.8)."""
    target_id: str | None
    """Of the target's topic. A position belongs to this topic alone: one that was deleted and
    created again is empty, and is mirrored from the beginning.
    """
    clusters: tuple[str, ...]
    """The ids of the source's cluster, and of those that it mirrors the topic from."""


class LastRecord(NamedTuple):
    """The last record of the source that is mirrored: the offset behind it, and its leader epoch,
    by which the source's leader knows whether its log has it still (KIP-320). A marker behind it
    may be of a later epoch, so the two belong together.
    """

    end: int
    epoch: int


class Position(NamedTuple):
    """Where a partition stands: the next source offset, and where its records are from."""

    offset: int
    origin: Origin
    last: LastRecord | None = None
    """None if there is none yet, or the source's brokers have no epochs."""
    is_left_out: bool = False
    """Whether the instance that held it has left its topic out, for the others to know."""

    @property
    def epoch(self) -> int | None:
        """Of the record just before the offset, as others expect it of a commit."""
        return self.last.epoch if self.last is not None and self.last.end == self.offset else None


def origin_fields(origin: Origin) -> dict[str, Any]:
    """As values of JSON."""
    return {
        "topic_id": origin.topic_id,
        "target_id": origin.target_id,
        "clusters": origin.clusters,
    }


def origin_of(fields: Any) -> Origin:
    """What `origin_fields` has written. Raises KeyError and TypeError."""
    clusters = tuple(str(each) for each in fields["clusters"])
    return Origin(_text(fields["topic_id"]), _text(fields["target_id"]), clusters)


def written(position: Position) -> str:
    """As the metadata of a commit."""
    found, last = origin_fields(position.origin), position.last
    if last is not None and position.epoch is None:
        found["last_record"] = {"end": last.end, "epoch": last.epoch}
    if position.is_left_out:
        found["left_out"] = True
    return json.dumps(found)


def read_position(offset: int, epoch: int | None, metadata: str) -> Position | None:
    """The position that a commit means; None for that of another program."""
    try:
        # confluent-kafka commits metadata with the NUL at the end of its C string, and reads it
        # until the next one: behind what another client committed are bytes of the heap.
        found: Any = json.JSONDecoder().raw_decode(metadata)[0]
        origin = origin_of(found)
        last = None if epoch is None else LastRecord(offset, epoch)
        written_last = found.get("last_record")
        if written_last is not None:
            last = LastRecord(int(written_last["end"]), int(written_last["epoch"]))
        return Position(offset, origin, last, found.get("left_out") is True)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def read_origin(metadata: str) -> Origin | None:
    """None for the metadata of another program."""
    position = read_position(0, None, metadata)
    return None if position is None else position.origin


def metadata_of(commit: Any) -> str:
    """The metadata of a commit as confluent-kafka gives it; what is behind it may be no UTF-8, and
    is decoded when the attribute is read.
    """
    try:
        return commit.metadata or ""
    except UnicodeDecodeError as error:
        return error.object.decode(errors="replace")


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def is_same(one: str | None, other: str | None) -> bool:
    """Whether two ids of topics may be those of one topic; None is not known."""
    return one is None or other is None or one == other
