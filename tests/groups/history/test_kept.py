"""What is kept of the histories of many groups."""

from __future__ import annotations

import json

import pytest

from ottla.groups.history.kept import MAX_BYTES, MAX_OF_GROUP, Kept


def entry(group: str, at_ms: int = 0, size: int = 10) -> dict[str, object]:
    return {"group": group, "at_ms": at_ms, "padding": "x" * size}


def test_of_one_group_the_newest_are_kept() -> None:
    kept = Kept()
    for at_ms in range(10 * MAX_OF_GROUP):
        kept.add(entry("g", at_ms))
    times = [each["at_ms"] for each in kept.of("g")]
    assert times == list(range(9 * MAX_OF_GROUP, 10 * MAX_OF_GROUP))
    assert kept.of("other") == []


def test_a_group_that_rebalances_all_the_time_leaves_the_history_of_others() -> None:
    kept = Kept()
    for number in range(20):
        kept.add(entry(f"quiet-{number}", size=500))
    for at_ms in range(2_000):
        kept.add(entry("noisy", at_ms, size=MAX_BYTES // 100))
    assert all(len(kept.of(f"quiet-{number}")) == 1 for number in range(20))
    assert kept.of("noisy")[-1]["at_ms"] == 1_999
    assert sum(map(len, kept.lines())) <= MAX_BYTES


def test_the_memory_has_a_limit_however_many_groups_there_are() -> None:
    kept = Kept()
    for number in range(5_000):
        kept.add(entry(f"g{number}", size=200))
    assert sum(map(len, kept.lines())) <= MAX_BYTES


def test_numbers_go_on_after_a_restart() -> None:
    kept = Kept()
    kept.add(entry("g"))
    kept.add(entry("h"))
    again = Kept(kept.lines())
    assert json.loads(again.add(entry("g")))["number"] == 2
    assert [each["number"] for each in again.of("g")] == [0, 2]


@pytest.mark.parametrize("line", [b"[]", b"{}", b"x", b'{"group":"g"}', b'{"number":1}'])
def test_what_is_no_document_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        Kept([line])
