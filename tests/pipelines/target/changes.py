"""Changes of a table at random, and the rule that says what a table with keys has of them.

The rule takes all records at once and does not know of batches: of those after the last truncation
the last one of each key counts, in their order; and with nulls that say nothing, of each column and
each field of a struct its last value.
"""

from __future__ import annotations

import random
from typing import Any

SCHEMA = (
    "id BIGINT, city STRING, place STRUCT<zip: INT, street: STRUCT<name: STRING>>, at INT, "
    "partition INT, offset BIGINT, tombstone BOOLEAN, truncation BOOLEAN"
)
Row = tuple[Any, ...]
"""id, city, place, at, partition, offset, tombstone, truncation."""
VALUES = slice(1, 3)
KINDS: dict[str, dict[str, Any]] = {
    "offsets": {},
    "offsets, nulls": {"ignore_nulls": True},
    "removed": {"order_by": "at"},
    "marked": {"order_by": "at", "deletes": "mark"},
    "marked, nulls": {"order_by": "at", "deletes": "mark", "ignore_nulls": True},
}
"""Tables with keys by what orders their rows, and what is done with deletions and nulls."""


def changes(
    seed: int, count: int, *, partitions: int = 1, late: int = 0, deletes: bool = True
) -> list[Row]:
    """Return records in the order in which they are read; `late`: how far `at` may be behind."""
    chosen = random.Random(seed)
    ends = [0] * partitions
    found: list[Row] = []
    for n in range(count):
        partition = chosen.randrange(partitions)
        at = n - chosen.randint(0, late)
        position = (at, partition, ends[partition])
        ends[partition] += 1
        kind = chosen.random()
        if kind < 0.12:
            found.append((None, None, None, *position, False, True))
        elif deletes and kind < 0.25:
            found.append((chosen.randrange(4), None, None, *position, True, False))
        else:
            street = chosen.choice([(f"s{n}",), (None,), None])
            place = chosen.choice([(n, street), (None, street), None])
            city = chosen.choice([f"c{n}", None])
            found.append((chosen.randrange(4), city, place, *position, False, False))
    return found


def changes_of(kind: str, seed: int) -> list[Row]:
    """Return records for a table of one of KINDS."""
    # What comes late can be told from what a deletion removed only where that is marked, and a row
    # that nulls have filled does not say from which records.
    late = "order_by" in KINDS[kind] and "ignore_nulls" not in KINDS[kind]
    return changes(
        seed, 36, partitions=3 if late else 1, late=9 if late else 0, deletes=kind != "removed"
    )


def expected_of(kind: str, records: list[Row]) -> list[Row]:
    """Return the rows that a table of one of KINDS has after all records."""
    how = KINDS[kind]
    return expected(records, ordered="order_by" in how, ignore_nulls="ignore_nulls" in how)


def expected(records: list[Row], *, ordered: bool, ignore_nulls: bool = False) -> list[Row]:
    """Return the rows that are there after all records: id, city, place, at, partition, offset.

    `ordered`: by `at`, not as they were read.
    """
    in_order = sorted(records, key=lambda one: one[3:6]) if ordered else records
    rows: dict[int, Row] = {}
    for one in in_order:
        if one[7]:
            rows = {}
        elif one[6]:
            rows.pop(one[0], None)
        else:
            had = rows.get(one[0], (None,) * 3)[VALUES]
            values = tuple(map(_filled, one[VALUES], had)) if ignore_nulls else one[VALUES]
            rows[one[0]] = (one[0], *values, *one[3:6])
    return [rows[key] for key in sorted(rows)]


def _filled(new: Any, old: Any) -> Any:
    if isinstance(new, tuple):
        before = old if isinstance(old, tuple) else (None,) * len(new)
        return tuple(map(_filled, new, before))
    return old if new is None else new


def split(records: list[Row], seed: int, batches: int = 4) -> list[list[Row]]:
    """Cut records into batches."""
    cuts = sorted(random.Random(seed).sample(range(1, len(records)), batches - 1))
    return [
        records[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(records)], strict=True)
    ]


def plain(value: Any) -> Any:
    """Return a row of Spark as plain tuples."""
    return tuple(map(plain, value)) if isinstance(value, tuple) else value
