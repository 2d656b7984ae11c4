"""What differs, and how it is shown."""

from __future__ import annotations

import pytest

from ottla.testing.errors import KitError
from ottla.testing.record import Expected, ReadRecord
from ottla.testing.record_difference import MAX_LINES, compare, difference, fields_of, matches


def found(*values: str) -> list[ReadRecord]:
    return [ReadRecord(value=value.encode(), offset=at) for at, value in enumerate(values)]


def shown(expected: list[Expected], records: list[ReadRecord], in_order: bool = True) -> str | None:
    return difference(compare(expected, records, in_order=in_order), "t")


def test_equal_records_have_no_difference() -> None:
    assert shown(["a", b"b"], found("a", "b")) is None
    assert shown([], []) is None
    assert shown(["b", "a"], found("a", "b"), in_order=False) is None


@pytest.mark.parametrize(
    ("expected", "same"),
    [
        ("text", True),
        (b"text", True),
        (("k", "text"), True),
        (("l", "text"), False),
        ({"headers": {"h": "1"}}, True),
        ({"headers": [("h", b"2")]}, False),
        ({"partition": 1, "offset": 7, "timestamp_ms": 5}, True),
        ({"offset": 8}, False),
        (None, False),
    ],
)
def test_only_the_given_fields_are_compared(expected: Expected, same: bool) -> None:
    record = ReadRecord(
        key=b"k", value=b"text", headers=(("h", b"1"),), partition=1, offset=7, timestamp_ms=5
    )
    assert matches(fields_of(expected), record) is same


def test_json_is_compared_by_its_meaning() -> None:
    record = ReadRecord(value=b'{"b": [1],   "a": 2}')
    assert matches({"value": {"a": 2, "b": [1]}}, record)
    assert not matches({"value": {"a": 2}}, record)
    assert not matches({"value": {"a": 2}}, ReadRecord(value=b"no json"))
    assert record.json == {"a": 2, "b": [1]}


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(KitError, match="no field 'val'; it has key, value"):
        fields_of({"val": "x"})


def test_the_difference_is_shown_where_it_is() -> None:
    records = found(*"abcdefgh")
    expected: list[Expected] = [*"abcd", "x", *"fgh"]
    assert shown(expected, records) == (
        "topic t: 1 missing and 1 unexpected, 7 as expected\n"
        "    ...\n"
        "    offset 2     'c'\n"
        "    offset 3     'd'\n"
        "  - missing      'x'\n"
        "  + offset 4     'e'\n"
        "    offset 5     'f'\n"
        "    offset 6     'g'\n"
        "    ..."
    )


def test_a_record_twice_and_a_record_lost() -> None:
    assert shown(["a", "b"], found("a", "a", "b")) == (
        "topic t: 1 unexpected, 2 as expected\n"
        "    offset 0     'a'\n"
        "  + offset 1     'a'\n"
        "    offset 2     'b'"
    )
    assert shown(["a", "b"], found("a"), in_order=False) == (
        "topic t: 1 missing, 1 as expected\n    offset 0     'a'\n  - missing      'b'"
    )


def test_several_partitions_are_named() -> None:
    records = [ReadRecord(value=b"a", partition=at, offset=4) for at in (0, 1)]
    text = shown(["a"], records, in_order=False)
    assert text is not None
    assert "  + 1:4          'a'" in text.splitlines()


def test_the_most_exact_expectation_chooses_first() -> None:
    records = [ReadRecord(value=b"a", offset=0), ReadRecord(value=b"a", key=b"k", offset=1)]
    assert shown(["a", {"value": "a", "key": None}], records, in_order=False) is None


def test_long_values_and_long_differences_are_cut() -> None:
    text = shown(["x" * 500], [])
    assert text is not None
    assert max(map(len, text.splitlines())) < 100
    text = shown([], found(*map(str, range(5_000))))
    assert text is not None
    assert len(text.splitlines()) == MAX_LINES + 2
    text = shown(["x"] * 3_000, found(*["y"] * 3_000))
    assert text is not None
    assert "3000 missing and 3000 unexpected" in text
