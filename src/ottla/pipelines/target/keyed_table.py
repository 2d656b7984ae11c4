"""A table that has one row for each key, or each version of it: which column is what. Pure.

Kafka orders the records of one partition and no others. So the position of a record
(`record_position`) says which record of a key is the last; where a key can move between partitions,
the column `order_by` says it, and the position is used between equal values.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.target.constraints import Constraint
from ottla.pipelines.target.record_position import (
    OFFSET,
    PARTITION,
    TIMESTAMP,
    TOPIC,
    RecordPosition,
    position_by_name,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType

TOMBSTONE: Final = "tombstone"
TRUNCATION: Final = "truncation"
"""The columns of a frame that mark a record which deletes its key, and one which says that the
table was truncated."""
IS_DELETED: Final = "is_deleted"
VALID_FROM: Final = "valid_from"
VALID_TO: Final = "valid_to"
IS_CURRENT: Final = "is_current"

DELETES: Final = ("remove", "mark")
KINDS: Final = {"history=True": (VALID_FROM, VALID_TO, IS_CURRENT), "deletes='mark'": (IS_DELETED,)}
"""The columns that a table has beside those of the frame, by the argument that asks for them."""

_POSITION: Final = (TOPIC, PARTITION, OFFSET)
_UNORDERED: Final = ("map", "variant", "void")  # neither compared nor grouped by Spark


@dataclass(frozen=True, slots=True)
class Part:
    """A column or a field of a struct; `parts` are its own fields, none where it is no struct."""

    name: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """The columns of the rows by their meaning; names are those of the frame.

    `columns`: what the table keeps, without the mark of tombstones. `position`: the columns of the
    topic, where the rows have one, of the partition and of the offset, which together say of which
    record a row is; empty where none do. `is_shared`: several rows may be of one record.
    `deletes`: a tombstone removes its row, or marks it as deleted. `is_result`: a row is no record
    but the result of all records of its key so far; that of
    the later batch wins. `track`: the columns whose change makes a version of a history; empty:
    each record is one. `ignore_nulls`: a null of a record keeps what its key had. `structs`: then,
    of each column that is a struct, its fields, each of which keeps what it had.
    `has_truncations`: rows that are true in the column TRUNCATION are no records of a key
    (`truncation`).
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    order_by: str | None = None
    position: tuple[str, ...] = (PARTITION, OFFSET)
    is_shared: bool = False
    has_tombstones: bool = False
    history: bool = False
    deletes: str = "remove"
    is_result: bool = False
    track: tuple[str, ...] = ()
    ignore_nulls: bool = False
    has_truncations: bool = False
    structs: tuple[Part, ...] = ()

    @property
    def order(self) -> tuple[str, ...]:
        """The columns that order the records of a key, the most important first."""
        if self.order_by is None:
            return self.position
        return tuple(dict.fromkeys((self.order_by, *self.position)))  # it may be the offset

    def parts_of(self, name: str) -> tuple[Part, ...]:
        """Return the fields of a column that keep what they had; none where it is kept whole."""
        return next((one.parts for one in self.structs if one.name == name), ())

    @property
    def own_topic(self) -> str | None:
        """The column of the topic where each key has one: a truncation takes the rows of its own.

        None: it takes those of the whole table.
        """
        topic = self.position[0] if len(self.position) == len(_POSITION) else None
        return topic if topic in self.keys else None

    @property
    def forgets_positions(self) -> bool:
        """Whether a deletion leaves nothing that says where the records of the key lie."""
        return self.has_tombstones and self.order_by is None

    @property
    def marks(self) -> tuple[str, ...]:
        """The columns of the frame that mark records, and are not in the table."""
        return _marks(has_tombstones=self.has_tombstones, has_truncations=self.has_truncations)

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that the table has beside those of the frame."""
        if self.history:
            return (VALID_FROM, VALID_TO, IS_CURRENT)
        return (IS_DELETED,) if self.deletes == "mark" else ()

    def schema(self, frame: StructType) -> StructType:
        """Return the columns of the table for those of the frame."""
        from pyspark.sql.types import BooleanType, StructType

        fields = {field.name: field for field in frame.fields}
        schema = StructType([fields[name] for name in self.columns])
        if self.history:
            assert self.order_by is not None
            kind = fields[self.order_by].dataType
            schema = schema.add(VALID_FROM, kind).add(VALID_TO, kind)
            return schema.add(IS_CURRENT, BooleanType())
        return schema.add(IS_DELETED, BooleanType()) if self.deletes == "mark" else schema

    def notices(self) -> list[str]:
        """Return what a user should know before the first batch, a line each."""
        if not (self.has_tombstones and self.order_by) or self.history or self.deletes == "mark":
            return []
        return [
            "deletes='remove' leaves nothing of a deleted key: a record that is older than the "
            f"deletion by {self.order_by}, and comes in a later batch, brings its row back. If "
            "records can come out of order, write deletes='mark', with a new table and checkpoint"
        ]

    def constrain(self, constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
        """Return what rows must fulfil: the table's constraints, and a key and an order.

        A tombstone that removes a row is not stored, so the table's constraints do not hold it
        back.
        """
        truncates = f"coalesce({TRUNCATION}, false) OR " if self.has_truncations else ""
        own = [
            Constraint(f"{truncates}{quoted(name)} IS NOT NULL", f"the key column {name} is null")
            for name in self.keys
        ]
        is_checked = self.order_by in self.keys and not self.has_truncations
        if self.order_by is not None and not is_checked:
            own.append(
                Constraint(
                    f"{quoted(self.order_by)} IS NOT NULL",
                    f"the column {self.order_by}, which orders the records of a key, is null",
                )
            )
        stored = self.history or self.deletes == "mark" or not self.has_tombstones
        spared = truncates if stored else f"{truncates}{TOMBSTONE} OR "
        of_table = [
            Constraint(f"{spared}({one.condition})", one.reason) if spared else one
            for one in constraints
        ]
        return (*own, *of_table)


def check_kind(keyed: KeyedTable | None, name: str, rows: StructType, table: StructType) -> None:
    """Refuse to merge into a table of another kind: a history, say, or one that is none, or one
    without the key, which would be null in the rows that it has.

    Raises PipelineError.
    """
    if keyed is None:
        return
    there = {one.lower() for one in table.names}
    if lacks := [one for one in keyed.keys if one.lower() not in there]:
        raise PipelineError(
            f"The table {name} has no column {lacks[0]}, which keys= names: the rows that it has "
            "would never be found again. If the column was renamed, give it its name back, or name "
            "the one that it has; else use a new table"
        )
    for words, names in KINDS.items():
        has, wants = set(names) <= set(table.names), set(names) <= set(keyed.added)
        columns = ", ".join(names)
        if wants and not has:
            raise PipelineError(
                f"The table {name} has no {columns}, which {words} needs: use a new table"
            )
        if has and not wants and not set(names) <= set(rows.names):
            raise PipelineError(
                f"The table {name} has {columns}, so it was made with {words}: write "
                f"{words}, or use a new table"
            )


def harm(keyed: KeyedTable | None) -> str:
    """Return what a batch may have done that was written beside another query's."""
    if keyed is None or keyed.order_by is not None:
        return "the table may have rows of it twice"
    return "its older rows may have replaced newer ones"


def listed(names: Sequence[str]) -> str:
    """Return columns as SQL lists them."""
    return ", ".join(map(quoted, names))


def same_key(keyed: KeyedTable, left: str, right: str) -> str:
    """Return the condition that two rows, named by their aliases, have the same key."""
    return " AND ".join(f"{left}.{quoted(key)} = {right}.{quoted(key)}" for key in keyed.keys)


def read_results(frame: StructType, keys: Sequence[str]) -> KeyedTable:
    """Return the table of an aggregation's results, a row for each key. Raises PipelineError."""
    found = tuple(find_column(frame, name, "keys").name for name in keys)
    if _has(frame, TOMBSTONE, "boolean"):
        raise PipelineError(
            "mode='update' deletes no rows, and the frame has the column tombstone: give it "
            "another name"
        )
    return KeyedTable(found, tuple(frame.names), position=(), is_result=True)


def read_keyed_table(
    frame: StructType,
    keys: Sequence[str],
    *,
    order_by: str | None = None,
    history: bool = False,
    deletes: str = "remove",
    streaming: bool = True,
    position: RecordPosition | None = None,
    track: Sequence[str] = (),
    ignore_nulls: bool = False,
    has_truncations: bool = False,
) -> KeyedTable:
    """Return which column of a frame is what; a frame that is not streaming is one batch.

    `position`: of which record a row is; None: by the names of the columns. `has_truncations`: the
    column TRUNCATION marks rows that truncate the table.

    Raises PipelineError: a name that is no column, a type that has no order, columns that are
    missing or taken.
    """
    found = tuple(find_column(frame, name, "keys").name for name in keys)
    if len(set(found)) < len(found):
        raise PipelineError(f"keys={list(keys)!r} names a column twice")
    if position is None:
        position = position_by_name(frame)
    has_tombstones = _has(frame, TOMBSTONE, "boolean")
    if history and order_by is None:
        order_by = _time_of_history(frame, position)
    if order_by is not None:
        order_by = find_column(frame, order_by, "order_by").name
    if not position.columns and (streaming or history or has_tombstones):
        _check_position(
            position,
            order_by,
            history=history,
            has_tombstones=has_tombstones,
            has_truncations=has_truncations,
        )
    _check_unordered(position, order_by)
    _check_deletes(deletes, order_by, history=history, has_tombstones=has_tombstones)
    if has_truncations:
        _check_truncations(frame, order_by, history=history)
    marks = _marks(has_tombstones=has_tombstones, has_truncations=has_truncations)
    columns = tuple(field.name for field in frame.fields if field.name not in marks)
    table = KeyedTable(
        found,
        columns,
        order_by,
        position.columns,
        position.is_shared and bool(position.columns),
        has_tombstones,
        history,
        deletes,
        ignore_nulls=ignore_nulls,
        has_truncations=has_truncations,
        structs=_structs(frame, columns) if ignore_nulls else (),
    )
    table = replace(table, track=_tracked(frame, table, track))
    _check_added(table)
    return table


def _check_added(table: KeyedTable) -> None:
    """Refuse a frame with a column that the table gets. Raises PipelineError."""
    taken = [name for name in table.added if name in {column.lower() for column in table.columns}]
    if taken:
        raise PipelineError(
            f"The frame has a column {taken[0]}, which the table gets from the sink: give it "
            "another name"
        )


def _structs(frame: StructType, columns: Sequence[str]) -> tuple[Part, ...]:
    """Return those columns of a frame that are structs, with their fields."""
    return tuple(one for one in _parts(frame) if one.parts and one.name in columns)


def _parts(kind: StructType) -> tuple[Part, ...]:
    return tuple(
        Part(one.name, _parts(one.dataType) if one.dataType.typeName() == "struct" else ())
        for one in kind.fields
    )


def _tracked(frame: StructType, table: KeyedTable, track: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of `track`. Raises PipelineError for one that cannot be tracked."""
    found = tuple(find_column(frame, name, "track").name for name in track)
    own = {
        **dict.fromkeys(table.order, "each record has another one"),
        **dict.fromkeys(table.keys, "it is the same in all versions of a key"),
        TOMBSTONE: "a deletion always ends a version",
    }
    for name in found:
        if name in own:
            raise PipelineError(
                f"track={list(track)!r}: the column {name} says nothing about a change, because "
                f"{own[name]}: name columns of the value, such as track=['city']"
            )
    if len(set(found)) < len(found):
        raise PipelineError(f"track={list(track)!r} names a column twice")
    return found


def _marks(*, has_tombstones: bool, has_truncations: bool) -> tuple[str, ...]:
    found = {TOMBSTONE: has_tombstones, TRUNCATION: has_truncations}
    return tuple(name for name, is_there in found.items() if is_there)


def _time_of_history(frame: StructType, position: RecordPosition) -> str:
    """Return the column that orders a history for which none is named. Raises PipelineError."""
    if not _has(frame, TIMESTAMP, "timestamp"):
        raise PipelineError(
            "history=True needs to know since when a version is valid: select the topic's "
            "column timestamp, or name another column, such as order_by='updated_at'"
        )
    if position.has_own_time:
        raise PipelineError(
            "history=True takes the topic's timestamp, and the column timestamp is not the "
            "topic's, but a field of the value or computed: write order_by='timestamp' if it "
            "says since when a version is valid, or select the topic's"
        )
    return TIMESTAMP


def _check_deletes(
    deletes: str, order_by: str | None, *, history: bool, has_tombstones: bool
) -> None:
    """Refuse marked deletions where nothing marks or orders them. Raises PipelineError."""
    if deletes == "mark" and history:
        raise PipelineError(
            "deletes='mark' is for tables without history=True: a history keeps each deletion as "
            "a version. Leave it out"
        )
    if deletes == "mark" and not (has_tombstones and order_by):
        raise PipelineError(
            "deletes='mark' keeps deleted keys so that older records of them are recognized: it "
            "needs order_by, and the column tombstone of topic(..., tombstones='mark')"
        )


def _check_truncations(frame: StructType, order_by: str | None, *, history: bool) -> None:
    """Refuse truncations where they cannot be applied. Raises PipelineError."""
    if history:
        raise PipelineError(
            "A history keeps what is gone, and truncating it would end the versions of all keys: "
            "with history=True leave out apply_as_truncates, and write truncate='ignore' or 'stop' "
            "for events of Debezium"
        )
    if order_by is not None and frame[order_by].dataType.simpleString() == "binary":
        raise PipelineError(
            f"order_by={order_by!r} is binary, by which no truncation can be ordered: choose a "
            "number, a text or a time"
        )


def _check_position(
    position: RecordPosition,
    order_by: str | None,
    *,
    history: bool,
    has_tombstones: bool,
    has_truncations: bool,
) -> None:
    """Refuse rows without partition and offset where nothing else orders all of them."""
    hint = ""
    if history:
        why = "recognize a record that comes a second time"
    elif order_by is None:
        why = "tell which record of a key is the last"
        hint = ", or name the column that says it in order_by"
    elif has_tombstones:
        why = "place a tombstone among the records of its key"
    elif has_truncations:
        why = "place a truncation among the records"
    else:
        return
    if position.missing:
        raise PipelineError(
            f"keys= needs the partition and offset of each record to {why}, and {position.missing}"
            f"{hint}"
        )
    raise PipelineError(
        f"keys= needs the topic's columns partition (int) and offset (bigint) to {why}: select "
        f"them too{hint}"
    )


def _check_unordered(position: RecordPosition, order_by: str | None) -> None:
    """Refuse rows whose position orders nothing, without `order_by`. Raises PipelineError."""
    if position.unordered and order_by is None:
        raise PipelineError(
            f"Which record of a key is the last is not known without order_by: "
            f"{position.unordered}. Name the column that orders the records, such as "
            "order_by='timestamp'"
        )


def _has(frame: StructType, name: str, kind: str) -> bool:
    return any(
        field.name == name and field.dataType.simpleString() == kind for field in frame.fields
    )


def find_column(frame: StructType, name: str, argument: str) -> StructField:
    """Return the column of this name, whatever its case; it can be compared.

    Raises PipelineError, naming the argument and the nearest column.
    """
    names = {field.name.lower(): field for field in frame.fields}
    field = names.get(name.lower())
    if field is None:
        near = difflib.get_close_matches(name.lower(), list(names), n=1)
        hint = (
            f"did you mean {names[near[0]].name!r}?" if near else f"it has {', '.join(frame.names)}"
        )
        raise PipelineError(f"{argument}: the frame has no column {name!r}; {hint}")
    kind = field.dataType.simpleString()
    if any(word in kind for word in _UNORDERED):
        raise PipelineError(
            f"{argument}: the column {name} is {kind}, which Spark cannot compare: choose another"
        )
    return field
