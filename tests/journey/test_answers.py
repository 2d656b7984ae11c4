"""What several leaders say of one message, as one document."""

from typing import Any

from ottla.journey.answers import joined


def told(partition: int, stamped: int | None) -> dict[str, Any]:
    return {
        "journey": 1,
        "partition": partition,
        "published": {"timestamp_ms": stamped},
        "elsewhere": [9],
    }


def refused(code: str, **more: object) -> dict[str, Any]:
    return {"journey": 1, "error": {"code": code, "message": "m", **more}}


def test_the_newest_message_of_several_leaders_is_shown() -> None:
    answer = joined([told(0, 5), refused("key_not_found", searched=[]), told(2, 9), told(1, None)])
    assert answer["partition"] == 2
    assert "elsewhere" not in answer


def told_of_key(
    message: tuple[int, int, int], also: list[dict[str, Any]], not_searched: list[int]
) -> dict[str, Any]:
    partition, offset, stamped = message
    row = {"did": "inserted", "of": None, "then": "current", "by": None}
    return told(partition, stamped) | {
        "offset": offset,
        "partition_chosen": {"why": f"why {partition}"},
        "key_elsewhere": {"messages": also, "not_searched": not_searched},
        "delivered": [{"row": row | {"also_in": [], "unless_in": not_searched}}, {"row": None}],
    }


def test_what_the_leaders_together_know_of_a_key() -> None:
    third = {"partition": 3, "offset": 1, "timestamp_ms": 1, "why": "why 3"}
    nothing = refused("key_not_found", searched=[{"partition": 4, "whole": True}])
    answers = [
        told_of_key((0, 8, 20), [third], [1, 2, 4, 5]),
        told_of_key((2, 6, 10), [], [0, 1, 3, 4, 5]),
        nothing | {"elsewhere": [0, 1, 2, 3, 5]},
        refused("not_leader"),
    ]
    answers[1]["key_elsewhere"]["removed"] = [0, 6]
    answer = joined(answers)
    second = {"partition": 2, "offset": 6, "timestamp_ms": 10, "why": "why 2"}
    assert answer["partition"] == 0
    assert answer["key_elsewhere"] == {
        "messages": [second, third],
        "not_searched": [1, 5],
        "removed": [6],
    }
    row, none = (one["row"] for one in answer["delivered"])
    assert none is None
    assert (row["did"], row["then"], row["also_in"], row["unless_in"]) == (None, None, [2, 3], [])


def test_a_key_that_no_other_leader_has() -> None:
    nothing = refused("key_not_found", searched=[{"partition": 1, "whole": True}])
    answer = joined([told_of_key((0, 8, 20), [], [1]), nothing | {"elsewhere": [0]}])
    assert answer["key_elsewhere"] == {"messages": [], "not_searched": [], "removed": []}
    assert told_row(answer) == ("inserted", "current", [], [])


def test_a_key_that_another_leader_may_have_had() -> None:
    searched = [{"partition": 1, "whole": True, "has_removed": True}]
    nothing = refused("key_not_found", searched=searched)
    answer = joined([told_of_key((0, 8, 20), [], [1]), nothing | {"elsewhere": [0]}])
    assert answer["key_elsewhere"] == {"messages": [], "not_searched": [], "removed": [1]}
    assert told_row(answer) == ("inserted", "current", [], [1])


def told_row(answer: dict[str, Any]) -> tuple[Any, ...]:
    row = answer["delivered"][0]["row"]
    return row["did"], row["then"], row["also_in"], row["unless_in"]


def listed(
    *messages: tuple[int, int], searched: tuple[int, ...], elsewhere: list[int]
) -> dict[str, Any]:
    return {
        "journey": 1,
        "topic": "t",
        "messages": [{"partition": index, "offset": offset} for index, offset in messages],
        "searched": [{"partition": index} for index in searched],
        "elsewhere": elsewhere,
    }


def test_the_lists_of_several_leaders_are_one() -> None:
    answer = joined(
        [
            listed((2, 0), searched=(2,), elsewhere=[0, 1, 3]),
            refused("key_not_found", searched=[{"partition": 1}]),
            listed((0, 8), (0, 9), searched=(0,), elsewhere=[1, 2, 3]),
            refused("not_leader"),
        ]
    )
    positions = [(one["partition"], one["offset"]) for one in answer["messages"]]
    assert positions == [(0, 8), (0, 9), (2, 0)]
    assert [one["partition"] for one in answer["searched"]] == [0, 1, 2]
    assert answer["unanswered"] == [3]
    assert "elsewhere" not in answer


def test_a_message_that_no_leader_has_is_reported_for_all_partitions() -> None:
    answer = joined(
        [
            refused("not_leader"),
            refused("which_offset", partitions=[{"partition": 2}]),
            refused("which_offset", partitions=[{"partition": 0}, {"partition": 1}]),
        ]
    )
    assert answer["error"]["code"] == "which_offset"
    assert [one["partition"] for one in answer["error"]["partitions"]] == [0, 1, 2]
