"""How the records of a topic differ from those that a test expects, for people to read. Pure.

  offset 0   'a' = 'first'
- missing    'b' = 'second'
+ offset 1   'b' = 'zweite'
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ottla.testing.errors import KitError, is_for_the_test
from ottla.testing.record import Expected, ReadRecord

__tracebackhide__ = is_for_the_test

FIELDS: Final = ("key", "value", "headers", "partition", "offset", "timestamp_ms")
MAX_COMPARED: Final = 4_000_000
"""Pairs of records. Between more, the longest common sequence is not searched: they are compared
one by one."""
MAX_LINES: Final = 60
_CONTEXT: Final = 2
"""Equal records shown before and after a difference."""
_MAX_SHOWN: Final = 70


class Line(NamedTuple):
    """One record of the comparison: what was expected, what was found, or both."""

    expected: Mapping[str, Any] | None
    found: ReadRecord | None


def fields_of(expected: Expected) -> Mapping[str, Any]:
    """The expected fields by name. Raises KitError if there is none of that name."""
    if isinstance(expected, ReadRecord):
        return {name: getattr(expected, name) for name in FIELDS}
    if isinstance(expected, tuple):
        key, value = expected
        return {"key": key, "value": value}
    if not isinstance(expected, Mapping):
        return {"value": expected}
    for name in expected:
        if name not in FIELDS:
            raise KitError(f"a record has no field {name!r}; it has {', '.join(FIELDS)}")
    return expected


def matches(expected: Mapping[str, Any], found: ReadRecord) -> bool:
    """Whether the record has what is expected of it."""
    return all(_same(name, value, getattr(found, name)) for name, value in expected.items())


def _same(name: str, expected: Any, found: Any) -> bool:
    if name == "headers":
        pairs = expected.items() if isinstance(expected, Mapping) else expected
        return [(key, _bytes(value)) for key, value in pairs] == list(found)
    if isinstance(expected, str):
        return bool(expected.encode() == found)
    if name in ("key", "value") and isinstance(expected, dict | list | bool | int | float):
        try:
            return bool(found is not None and json.loads(found) == expected)
        except ValueError:
            return False
    return bool(expected == found)


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def compare(
    expected: Sequence[Expected], found: Sequence[ReadRecord], *, in_order: bool
) -> list[Line]:
    """Both side by side: in the order of `found`, with what is missing where it was expected, or at
    the end if the order does not matter.
    """
    wanted = [fields_of(each) for each in expected]
    return list(_aligned(wanted, found) if in_order else _paired(wanted, found))


def difference(lines: Sequence[Line], topic: str) -> str | None:
    """The difference as text; None if there is none."""
    missing = sum(line.found is None for line in lines)
    extra = sum(line.expected is None for line in lines)
    if not missing and not extra:
        return None
    counts = [f"{missing} missing"] if missing else []
    counts += [f"{extra} unexpected"] if extra else []
    equal = len(lines) - missing - extra
    shown = list(_shown(lines))
    left_out = len(shown) - MAX_LINES
    if left_out > 0:
        shown[MAX_LINES:] = [f"  ... {left_out} more lines"]
    return "\n".join([f"topic {topic}: {' and '.join(counts)}, {equal} as expected", *shown])


def _aligned(wanted: list[Mapping[str, Any]], found: Sequence[ReadRecord]) -> Iterator[Line]:
    """By the longest common sequence."""
    start = 0
    while start < min(len(wanted), len(found)) and matches(wanted[start], found[start]):
        yield Line(wanted[start], found[start])
        start += 1
    wanted, found = wanted[start:], found[start:]
    if len(wanted) * len(found) > MAX_COMPARED:
        for at in range(max(len(wanted), len(found))):
            one = wanted[at] if at < len(wanted) else None
            other = found[at] if at < len(found) else None
            if one is not None and other is not None and matches(one, other):
                yield Line(one, other)
                continue
            if one is not None:
                yield Line(one, None)
            if other is not None:
                yield Line(None, other)
        return
    same = [[matches(one, other) for other in found] for one in wanted]
    longest = [[0] * (len(found) + 1) for _ in range(len(wanted) + 1)]
    for row in reversed(range(len(wanted))):
        for column in reversed(range(len(found))):
            longest[row][column] = (
                longest[row + 1][column + 1] + 1
                if same[row][column]
                else max(longest[row + 1][column], longest[row][column + 1])
            )
    row = column = 0
    while row < len(wanted) or column < len(found):
        if row < len(wanted) and column < len(found) and same[row][column]:
            yield Line(wanted[row], found[column])
            row, column = row + 1, column + 1
        elif column == len(found) or (
            row < len(wanted) and longest[row + 1][column] >= longest[row][column + 1]
        ):
            yield Line(wanted[row], None)
            row += 1
        else:
            yield Line(None, found[column])
            column += 1


def _paired(wanted: list[Mapping[str, Any]], found: Sequence[ReadRecord]) -> Iterator[Line]:
    """Each expected record with the first that matches; those with most fields choose first."""
    partners: dict[int, Mapping[str, Any]] = {}
    missing: list[Mapping[str, Any]] = []
    for each in sorted(wanted, key=len, reverse=True):
        free = (
            at for at, record in enumerate(found) if at not in partners and matches(each, record)
        )
        at = next(free, None)
        if at is None:
            missing.append(each)
        else:
            partners[at] = each
    for at, record in enumerate(found):
        yield Line(partners.get(at), record)
    for each in missing:
        yield Line(each, None)


def _shown(lines: Sequence[Line]) -> Iterator[str]:
    differ = [at for at, line in enumerate(lines) if line.expected is None or line.found is None]
    near = {at + step for at in differ for step in range(-_CONTEXT, _CONTEXT + 1)}
    partitions = {line.found.partition for line in lines if line.found is not None}
    skipped = False
    for at, line in enumerate(lines):
        if at not in near:
            if not skipped:
                yield "    ..."
            skipped = True
            continue
        skipped = False
        yield _line(line, len(partitions) > 1)


def _line(line: Line, names_partition: bool) -> str:
    if line.found is None:
        assert line.expected is not None
        return f"  - {'missing':<12} {_text(line.expected)}"
    position = f"offset {line.found.offset}"
    if names_partition:
        position = f"{line.found.partition}:{line.found.offset}"
    sign = "+" if line.expected is None else " "
    fields = {"key": line.found.key, "value": line.found.value}
    if line.found.headers:
        fields["headers"] = line.found.headers  # type: ignore[assignment]
    return f"  {sign} {position:<12} {_text(fields)}"


def _text(fields: Mapping[str, Any]) -> str:
    parts = []
    if "key" in fields and fields["key"] is not None:
        parts.append(f"{_value(fields['key'])} =")
    if "value" in fields:
        parts.append(_value(fields["value"]))
    for name in FIELDS[2:]:
        if name in fields:
            parts.append(f"{name}={_value(fields[name])}")
    return " ".join(parts)


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            value = value.decode()
    if isinstance(value, dict | list):
        value = json.dumps(value)
    text = "no value" if value is None else repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 4]}...{text[-1]}"
