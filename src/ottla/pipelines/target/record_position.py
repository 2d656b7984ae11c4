"""Of which record a row is: the columns that say it, found by where they come from. Pure.

The position of a record is its topic, partition and offset. Columns of these names can be anything:
a field of the value, a number that the query computed, those of another topic in a union. So of a
stream each column is followed to the stream that it comes from (`run.column_origins`), whatever its
name is. Of a batch frame, which is read from anywhere, the names and types are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

TOPIC: Final = "topic"
PARTITION: Final = "partition"
OFFSET: Final = "offset"
TIMESTAMP: Final = "timestamp"
_KINDS: Final = {TOPIC: "string", PARTITION: "int", OFFSET: "bigint"}

EXPLODED: Final = "exploded"
JOINED: Final = "joined"
JOINED_STREAMS: Final = "joined streams"
"""What a column passes on its way from the stream: each may make several rows of one record."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream that a frame reads; `topic` is "" where it is none of Kafka.

    `has_several`: it reads several topics.
    """

    number: int
    topic: str = ""
    has_several: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """The column of a stream that a column of the frame is, unchanged, and what it passes."""

    stream: Stream
    column: str
    passes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Constant:
    """A column that is a text in each row."""

    value: str


Origins: TypeAlias = tuple[Origin | Constant | None, ...]
"""Where a column comes from: one for each part of a union; None where it is computed."""


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """The columns of a frame that say of which record a row is.

    `columns`: that of the topic, if there is one, of the partition and of the offset; empty where
    no columns say it. `missing`: why there are none. `unordered`: why the position of a row does
    not say which row of a key is the last. Both are parts of a sentence, empty if there is no
    reason. `is_shared`: several rows may be of one record. `has_own_time`: the column timestamp is
    not that of the records.
    """

    columns: tuple[str, ...] = ()
    missing: str = ""
    unordered: str = ""
    is_shared: bool = False
    has_own_time: bool = False


def position_by_name(frame: StructType) -> RecordPosition:
    """Return the position of a frame's rows by the names and types of its columns."""
    found = [name for name in _KINDS if any(one.name == name for one in _of_kind(frame, name))]
    return RecordPosition(tuple(found) if {PARTITION, OFFSET} <= set(found) else ())


def position_by_origin(frame: StructType, origins_of: Callable[[str], Origins]) -> RecordPosition:
    """Return the position of a frame's rows; `origins_of` says where a column comes from."""
    has_own_time = TIMESTAMP in frame.names and not _is(TIMESTAMP, origins_of(TIMESTAMP))
    return replace(_position(frame, origins_of), has_own_time=has_own_time)


def _position(frame: StructType, origins_of: Callable[[str], Origins]) -> RecordPosition:
    partition = _find(frame, PARTITION, origins_of)
    offset = _find(frame, OFFSET, origins_of)
    if partition is None or offset is None:
        return RecordPosition(missing=_not_the_topics(frame, partition, offset))
    parts = _from_streams(origins_of(partition))
    streams = [one.stream for one in parts]
    if streams != [one.stream for one in _from_streams(origins_of(offset))]:
        return RecordPosition(missing=f"{partition} and {offset} are of different streams")
    distinct = list(dict.fromkeys(streams))
    topics = list(dict.fromkeys(stream.topic or f"#{stream.number}" for stream in distinct))
    is_one = len(topics) == 1 and not any(stream.has_several for stream in distinct)
    topic = _find_topic(frame, streams, origins_of, only_named=is_one)
    if topic is None and not is_one:
        return RecordPosition(missing=_several(distinct))
    passes = frozenset[str]().union(*(one.passes for one in parts))
    is_twice = len(topics) < len(distinct)
    return RecordPosition(
        (partition, offset) if topic is None else (topic, partition, offset),
        unordered=_unordered(passes, is_twice),
        is_shared=bool(passes) or len(distinct) < len(streams) or is_twice,
    )


def _find(frame: StructType, wanted: str, origins_of: Callable[[str], Origins]) -> str | None:
    """Return the column that is a column of the streams; the one of that name comes first."""
    for field in sorted(_of_kind(frame, wanted), key=lambda one: one.name != wanted):
        if _is(wanted, origins_of(field.name)):
            return str(field.name)
    return None


def _is(wanted: str, origins: Origins) -> bool:
    """Tell whether a column is this one of the streams."""
    return all(isinstance(one, Origin) and one.column == wanted for one in origins)


def _find_topic(
    frame: StructType,
    streams: Sequence[Stream],
    origins_of: Callable[[str], Origins],
    *,
    only_named: bool,
) -> str | None:
    """Return the column that says from which topic a row is, None where there is none.

    It is Kafka's own column `topic`, or a column of that name with another text for each topic.
    """
    for field in sorted(_of_kind(frame, TOPIC), key=lambda one: one.name.lower() != TOPIC):
        if only_named and field.name.lower() != TOPIC:
            return None
        if _tells_apart(field.name, streams, origins_of(field.name)):
            return str(field.name)
    return None


def _tells_apart(name: str, streams: Sequence[Stream], origins: Origins) -> bool:
    if len(origins) != len(streams):
        return False
    texts: dict[str, str] = {}  # the text of each topic
    for stream, origin in zip(streams, origins, strict=True):
        topic = stream.topic or f"#{stream.number}"
        if isinstance(origin, Constant) and name.lower() == TOPIC and not stream.has_several:
            text = origin.value
        elif isinstance(origin, Origin) and origin.stream == stream and origin.column == TOPIC:
            text = topic
        else:
            return False
        if texts.setdefault(topic, text) != text:
            return False
    return len(set(texts.values())) == len(texts)


def _of_kind(frame: StructType, wanted: str) -> Iterable[StructField]:
    return (one for one in frame.fields if one.dataType.simpleString() == _KINDS[wanted])


def _from_streams(origins: Origins) -> list[Origin]:
    return [origin for origin in origins if isinstance(origin, Origin)]


def _not_the_topics(frame: StructType, partition: str | None, offset: str | None) -> str:
    """Return which column has the name and is not the topic's, empty where none has."""
    for name, found in ((PARTITION, partition), (OFFSET, offset)):
        if found is None and name in frame.names:
            return (
                f"the column {name} is not the topic's, but a field of the value or computed: "
                f"select the topic's too, under another name, such as '{name} AS record_{name}'"
            )
    return ""


def _several(streams: Sequence[Stream]) -> str:
    if any(stream.has_several for stream in streams):
        return (
            "the frame reads several topics, which have the same numbers: select Kafka's column "
            "topic too"
        )
    names = [repr(stream.topic) for stream in streams if stream.topic]
    read = f"the topics {', '.join(names)}" if len(names) > 1 else "several streams"
    return (
        f"the frame unites {read}, which have the same numbers: give each the column topic before "
        "the union, such as withColumn('topic', lit('flights'))"
    )


def _unordered(passes: frozenset[str], is_twice: bool) -> str:
    if EXPLODED in passes:
        return "explode makes several rows of one record, which have one partition and offset"
    if JOINED_STREAMS in passes:
        return "a join of two streams gives its rows in another order than that of the records"
    return "the frame reads a topic twice, at two paces" if is_twice else ""
