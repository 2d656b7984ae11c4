"""The order of Java's collections; what is expected here was printed by Java 21."""

from __future__ import annotations

from ottla.groups.streams.java_order import (
    MAX_HASHED,
    JavaQueue,
    order_of_computed,
    order_of_puts,
)

KEYS = (
    "process-1", "q", "aß日😀", "Aa", "BB", "a-rather-long-id-0001", "x", "y", "z", "31", "b8f",
    "member", "p", "r", "s",
)  # fmt: skip
"""`Aa` and `BB` have one hash."""


def test_keys_that_were_put() -> None:
    assert order_of_puts(KEYS) == [
        "Aa", "BB", "a-rather-long-id-0001", "process-1", "p", "q", "b8f", "r", "s", "x", "member",
        "y", "z", "31", "aß日😀",
    ]  # fmt: skip


def test_keys_that_were_computed() -> None:
    """Each was asked for twice; the table grows later, and the last key of a bin comes first."""
    assert order_of_computed(KEYS[:1] * 2, 1) == ["process-1"]
    assert order_of_computed(KEYS[:3] * 2, 3) == ["process-1", "q", "aß日😀"]
    assert order_of_computed(KEYS * 2, len(KEYS)) == [
        "BB", "Aa", "a-rather-long-id-0001", "process-1", "p", "b8f", "q", "r", "s", "member", "x",
        "y", "z", "31", "aß日😀",
    ]  # fmt: skip


def test_the_least_loaded_is_taken_and_added_again() -> None:
    queue: JavaQueue[int] = JavaQueue()
    loads = {item: item % 3 for item in range(7)}
    for item, load in loads.items():
        queue.add(load, item)
    taken = []
    for _ in range(14):
        item = queue.take()
        taken.append(item)
        loads[item] += 1
        queue.add(loads[item], item)
    assert taken == [0, 3, 6, 3, 6, 1, 4, 0, 4, 0, 6, 2, 3, 1]


def test_only_the_first_characters_of_an_id_count() -> None:
    first = "i" * MAX_HASHED
    assert order_of_puts([f"{first}b", f"{first}a"]) == [f"{first}b", f"{first}a"]
