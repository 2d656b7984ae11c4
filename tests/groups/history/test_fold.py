"""The limits of what is kept of a rebalance."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from ottla.groups.history.events import (
    CONSUMER,
    Assigned,
    Cause,
    Caused,
    Completed,
    Emptied,
    Reached,
    Who,
    Why,
)
from ottla.groups.history.fold import MAX_FIRST, MAX_LAST, MAX_OPEN, Histories
from ottla.groups.history.kept import MAX_LINE_BYTES, Kept
from ottla.groups.history.moves import MAX_FOLLOWED, MAX_MOVES, MAX_TEXT
from ottla.groups.stored import GroupMetadataValue, MemberMetadata

TOPIC = UUID(int=1)


def histories() -> Histories:
    return Histories({TOPIC: "t"}.get)


def joined(number: int, group: str = "g", name: str = "m") -> Caused:
    cause = Cause(Why.JOINED, Who(f"{name}{number}", None, name, name))
    return Caused(group, CONSUMER, number, 1_000 + number, cause)


def test_of_many_causes_the_first_and_the_last_are_told_and_the_others_counted() -> None:
    folding = histories()
    for number in range(500):
        folding.fold(joined(number))
    (entry,) = folding.fold(Emptied("g", CONSUMER, 500, 5_000))
    ids = [each["member"]["id"] for each in entry["causes"]]
    first = [f"m{number}" for number in range(MAX_FIRST)]
    assert ids == first + [f"m{number}" for number in range(500 - MAX_LAST, 500)]
    assert entry["more_causes"] == {"joined": 500 - MAX_FIRST - MAX_LAST}
    assert (entry["first_epoch"], entry["epoch"], entry["lasted_ms"]) == (0, 500, 4_000)


def test_of_many_partitions_the_number_is_told() -> None:
    folding = histories()
    folding.fold(joined(1))
    many = {TOPIC: frozenset(range(100_000))}
    folding.fold(Assigned("g", CONSUMER, 1, 1_000, {"m1": "c"}, {"m1": {}}, {"m1": many}))
    (entry,) = folding.fold(Reached("g", "m1", 1, 1_001))
    assert (entry["moved"], entry["is_complete"], entry["moves"]) == (100_000, False, [])
    assert MAX_FOLLOWED < 100_000


def test_of_many_moves_the_largest_are_listed() -> None:
    folding = histories()
    folding.fold(joined(1))
    after = {
        f"m{number}": {TOPIC: frozenset(range(100 * number, 101 * number + 1))}
        for number in range(MAX_MOVES + 5)
    }
    before: dict[str, dict[UUID, frozenset[int]]] = {each: {} for each in after}
    folding.fold(Assigned("g", CONSUMER, 1, 1_000, dict.fromkeys(after, "c"), before, after))
    for member in after:
        ended = folding.fold(Reached("g", member, 1, 1_001))
    (entry,) = ended
    assert len(entry["moves"]) == MAX_MOVES
    assert not entry["is_complete"]
    assert entry["moves"][0]["to"]["id"] == f"m{MAX_MOVES + 4}"


def test_what_moves_twice_went_from_its_first_owner_to_its_last() -> None:
    folding = histories()
    part, none = {TOPIC: frozenset({0})}, {TOPIC: frozenset[int]()}
    clients = {each: each for each in "abc"}
    folding.fold(joined(1))
    two = {"a": part, "b": none}
    folding.fold(Assigned("g", CONSUMER, 1, 1_000, clients, two, {"a": none, "b": part}))
    folding.fold(joined(2))
    two = {"b": part, "c": none}
    folding.fold(Assigned("g", CONSUMER, 2, 1_000, clients, two, {"b": none, "c": part}))
    for member in clients:
        ended = folding.fold(Reached("g", member, 2, 1_001))
    (move,) = ended[0]["moves"]
    assert (move["from"]["id"], move["to"]["id"]) == ("a", "c")


def test_members_of_a_former_epoch_end_nothing() -> None:
    folding = histories()
    folding.fold(joined(1))
    folding.fold(Assigned("g", CONSUMER, 1, 1_000, {"m1": "c"}, {}, {}))
    folding.fold(joined(2))
    assert folding.fold(Reached("g", "m1", 1, 1_001)) == []
    assert folding.fold(Reached("other", "m1", 1, 1_001)) == []


def test_too_many_rebalances_at_once_end_the_oldest_as_lost() -> None:
    folding = histories()
    ended = [folding.fold(joined(1, f"g{number}")) for number in range(MAX_OPEN + 1)]
    assert not any(ended[:-1])
    ((entry,),) = ended[-1:]
    assert (entry["group"], entry["end"]) == ("g0", "lost")


def completed(kind: str, assignment: bytes) -> Any:
    member = MemberMetadata("m", None, "c", "h", 1, 1, b"", assignment)
    value = GroupMetadataValue(kind, 1, "p", "m", 5, (member,))
    (entry,) = histories().fold(Completed("g", 1_000, None, value))
    return entry


def test_assignments_that_cannot_be_read_leave_what_moved_unknown() -> None:
    assert completed("connect", b"\0\1")["moved"] is None
    assert completed("consumer", b"\xff")["moved"] is None
    assert completed("consumer", bytes(1 << 20))["moved"] is None
    assert completed("consumer", b"")["moved"] == 0


def test_a_line_is_never_long_whatever_clients_are_called() -> None:
    folding, kept = histories(), Kept()
    name = "n" * 30_000
    for number in range(50):
        folding.fold(joined(number, name=name))
    (entry,) = folding.fold(Emptied("g", CONSUMER, 50, 5_000))
    assert {len(each["member"]["client_id"]) for each in entry["causes"]} == {MAX_TEXT}
    assert len(kept.add(entry)) < MAX_LINE_BYTES
    huge = entry | {"causes": [{"why": "joined", "reason": "\u4e2d" * MAX_LINE_BYTES}]}
    line = json.loads(kept.add(huge))
    assert (line["causes"], line["is_complete"]) == ([], False)
