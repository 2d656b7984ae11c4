"""Tables with keys in the model: what is sent, and what the table must then have.

The rule does not know of batches or statements: of the records that are delivered, the last one of
a key counts. A record has a number `n`, in the order of production, from which all else follows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from ottla.pipelines.target.keyed_table import TRUNCATION, KeyedTable, read_keyed_table

SCHEMA: Final = StructType(
    [
        StructField("id", LongType()),
        StructField("value", DoubleType()),
        StructField("n", LongType()),
        StructField("at", LongType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("tombstone", BooleanType()),
    ]
)
KEYS: Final = 5
TOMBSTONE_EACH: Final = 3
TRUNCATION_EACH: Final = 7
JITTER: Final = (0, -7, 2, -1, 5)
"""Records are that much out of order by `at`."""

TABLES: Final[dict[str, dict[str, Any]]] = {
    "upsert": {},
    "marked": {"order_by": "at", "deletes": "mark"},
    "history": {"order_by": "at", "history": True},
    "truncated": {"order_by": "at", "has_truncations": True},
    "emptied": {"has_truncations": True},
}


def _as_float(value: float | None) -> float | None:
    if value is None:
        return None
    found: float = struct.unpack("f", struct.pack("f", value))[0]
    return found


Position = tuple[str, int, int]
"""Of a record: the topic's id, partition and offset."""


@dataclass(frozen=True)
class Record:
    """What a producer has sent."""

    n: int
    key: int
    topic_id: str
    partition: int
    offset: int

    @property
    def position(self) -> Position:
        return self.topic_id, self.partition, self.offset

    @property
    def value(self) -> float:
        """A number that a FLOAT does not hold."""
        return self.n + 1 / 3

    @property
    def at(self) -> int:
        # Two records of one position, in a topic and the one made after it, have different times.
        return 10 * (self.n + JITTER[self.n % len(JITTER)]) + int(self.topic_id.split("-")[1]) % 10

    @property
    def is_tombstone(self) -> bool:
        return self.n % TOMBSTONE_EACH == 0

    @property
    def truncates(self) -> bool:
        """Whether it truncates the table, where truncations are applied."""
        return self.n % TRUNCATION_EACH == 0


def _frame(*, truncates: bool) -> StructType:
    """Return the columns of the frame."""
    marks = [StructField(TRUNCATION, BooleanType())] if truncates else []
    return StructType([*SCHEMA.fields, *marks])


class Records:
    """The records of a topic, of its former ones too, and a table that they are written to."""

    def __init__(self, table: str) -> None:
        self.truncates = bool(TABLES[table].get("has_truncations"))
        self.frame = _frame(truncates=self.truncates)
        self.keyed: KeyedTable = read_keyed_table(self.frame, ["id"], **TABLES[table])
        self.columns = tuple(self.keyed.schema(self.frame).names)
        self.is_narrow = False
        self.moved: set[int] = set()
        self._sent: list[Record] = []
        self._at: dict[Position, Record] = {}

    @property
    def schema(self) -> StructType:
        """The columns of the table as it is made; somebody may have made it with a narrower one."""
        found = self.keyed.schema(self.frame)
        return StructType(
            [
                StructField(one.name, FloatType())
                if self.is_narrow and one.name == "value"
                else one
                for one in found.fields
            ]
        )

    # ---- the topic

    def send(self, topic_id: str, partition: int, ends: dict[int, int], count: int) -> None:
        """Send records; without `order_by` a key has the partition that its number gives it."""
        for _ in range(count):
            n = len(self._sent) + 1
            key = (n * n + partition * 3 + n // 7) % KEYS
            chosen = key % len(ends) if self.keyed.order_by is None else partition % len(ends)
            record = Record(n, key, topic_id, chosen, ends[chosen])
            ends[chosen] += 1
            self._sent.append(record)
            self._at[record.position] = record

    def rows(self, positions: Iterable[Position]) -> tuple[Any, ...]:
        return tuple(map(self._row, map(self._at.__getitem__, positions)))

    def _row(self, record: Record) -> tuple[Any, ...]:
        """Return the columns of `frame`."""
        place = (record.n, record.at, record.partition, record.offset)
        if self.truncates and record.truncates:
            return (None, None, *place, False, True)
        is_tombstone = self._is_tombstone(record)
        value = None if is_tombstone else record.value
        row = (record.key, value, *place, is_tombstone)
        return (*row, False) if self.truncates else row

    def _is_tombstone(self, record: Record) -> bool:
        """Tell whether a record deletes its key.

        Where truncations have an order, none does: a deleted row leaves nothing that an older
        record could be compared with, as the notice says.
        """
        return record.is_tombstone and not (self.truncates and self.keyed.order_by is not None)

    def positions(self, rows: Iterable[tuple[Any, ...]]) -> tuple[Position, ...]:
        """Return of which records rows are: of the frame, or of the table."""
        number = SCHEMA.names.index("n")
        return tuple(self._sent[row[number] - 1].position for row in rows)

    def cast(self, rows: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return rows as the table stores them: a FLOAT takes a DOUBLE, and changes it."""
        if not self.is_narrow:
            return tuple(rows)
        at = self.columns.index("value")
        return tuple((*row[:at], _as_float(row[at]), *row[at + 1 :]) for row in rows)

    def begin(self, positions: Iterable[Position], partitions: int) -> None:
        """A new query begins, to which a topic's records are one stream.

        Where nothing orders them, it cannot know the last record of a key whose partition was
        another one before partitions were added.
        """
        if self.keyed.order_by is None:
            found = [self._at[position] for position in positions]
            self.moved |= {one.key for one in found if one.partition != one.key % partitions}

    # ---- what the table must have

    def _rank(self, record: Record) -> tuple[int, ...]:
        """Return what says which of two records of a key is the last."""
        if self.keyed.order_by is None:
            return (record.n,)
        return (record.at, record.partition, record.offset)

    def missing(self, table: Iterable[tuple[Any, ...]], positions: Iterable[Position]) -> list[str]:
        """Return what a table lacks that has these records: a row, or a deletion."""
        wanted = [self._at[position] for position in positions]
        wanted = [one for one in wanted if one.key not in self.moved and not self._is_gone(one)]
        if self.keyed.history:
            has = set(self.positions(table))
            return [f"{one}" for one in wanted if one.position not in has]
        last: dict[int, Record] = {}
        for one in wanted:
            if one.key not in last or self._rank(one) > self._rank(last[one.key]):
                last[one.key] = one
        rows = {record.key: record for record in self._of(table)}
        return [
            f"{one}, and the table has {rows.get(key)}"
            for key, one in last.items()
            if not self._reflects(rows.get(key), one)
        ]

    def _is_gone(self, record: Record) -> bool:
        """Tell whether a truncation that was sent leaves nothing of a record, or it is one."""
        return self.truncates and any(
            one.truncates and self._rank(one) >= self._rank(record) for one in self._sent
        )

    def not_truncated(
        self, table: Iterable[tuple[Any, ...]], positions: Iterable[Position]
    ) -> list[str]:
        """Return the rows of a table that a truncation should have taken away.

        `positions`: of the records that one query has read, with the truncation among them.
        """
        read = [self._at[position] for position in positions]
        last = max((self._rank(one) for one in read if one.truncates), default=None)
        if not self.truncates or last is None:
            return []
        return [f"{one}" for one in self._of(table) if one in read and self._rank(one) < last]

    def _reflects(self, row: Record | None, wanted: Record) -> bool:
        """Tell whether a row, or none, is what a record leaves, or one that is newer."""
        if row is not None:
            newer = self._rank(row) > self._rank(wanted)
            return newer or (
                row == wanted and (not self._is_tombstone(row) or bool(self.keyed.added))
            )
        if self.keyed.deletes == "mark":
            return False
        return any(
            one.key == wanted.key
            and self._is_tombstone(one)
            and self._rank(one) >= self._rank(wanted)
            for one in self._sent
        )

    def _of(self, table: Iterable[tuple[Any, ...]]) -> list[Record]:
        number = self.columns.index("n")
        return [self._sent[row[number] - 1] for row in table]

    def wrong(self, table: tuple[tuple[Any, ...], ...]) -> str:
        """Return what of a table is in no topic; empty where each row is what was sent."""
        expected: dict[int, tuple[Any, ...]] = {}
        for record in self._of(table):
            row = self._row(record)[: len(SCHEMA.names) - 1]  # the table keeps no marks
            expected[record.n] = (*row, self._is_tombstone(record)) if self._marks else row
        width = len(SCHEMA.names) - 1 + self._marks
        for row in table:
            wanted = expected[row[SCHEMA.names.index("n")]]
            if row[:width] != wanted:
                return f"{row} is no row of {wanted}"
        keys = [row[0] for row in table]
        if self.keyed.history:
            return self._broken(table)
        twice = [key for key in keys if keys.count(key) > 1]
        return f"the key {twice[0]} has several rows" if twice else ""

    @property
    def _marks(self) -> bool:
        return self.keyed.deletes == "mark"

    def _broken(self, table: tuple[tuple[Any, ...], ...]) -> str:
        """Return which version of a history does not end where the next one begins."""
        versions: dict[int, list[tuple[Record, tuple[Any, ...]]]] = {}
        for record, row in zip(self._of(table), table, strict=True):
            versions.setdefault(record.key, []).append((record, row[-3:]))
        for found in versions.values():
            found.sort(key=lambda one: self._rank(one[0]))
            followers = [record.at for record, _ in found[1:]] + [None]
            for (record, row), follower in zip(found, followers, strict=True):
                until = record.at if self._is_tombstone(record) else follower
                if row != (record.at, until, until is None):
                    return f"{record} is {row}, and should end at {until}"
        return ""
