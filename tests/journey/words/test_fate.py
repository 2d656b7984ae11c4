"""What became of a message in one line: no more than its journey says."""

from typing import Any

import pytest

from ottla.journey.words.fate import fate_of, format_fate

Document = dict[str, Any]
ALL = {"complete": True, "unanswered": [], "without_leader": 0, "left_out": 0}


def group(name: str, state: str = "read", doubt: str | None = None) -> Document:
    return {"group": name, "state": state, "doubt": doubt}


def delivery(**more: Any) -> Document:
    return {
        "group": "p",
        "query": "flights",
        "delta": {"first_version": 7, "last_version": 7},
        "sink": {"kind": "delta"},
        "rejected": None,
        "row": None,
        "in_doubt": False,
        **more,
    }


def said(*groups: Document, **more: Any) -> str:
    journey = {
        "state": "stored",
        "transaction": None,
        "read": list(groups),
        "groups": ALL,
        "delivered": [],
        "retention": {},
        **more,
    }
    return format_fate(fate_of(journey))


@pytest.mark.parametrize(
    ("groups", "line"),
    [
        ([], "no group has committed offsets"),
        ([group("a")], "read by a"),
        ([group("a"), group("b")], "read by a and b"),
        ([group("a"), group("b"), group("c")], "read by 3 groups"),
        ([group("a", doubt="first_commit")], "passed by a"),
        ([group("a", "not_known", "unordered")], "not known of a"),
        ([group("a", "not_yet"), group("b")], "read by b; not yet by a"),
        ([group("a", "set_back"), group("b", "missed")], "set back: a; missed by b"),
    ],
)
def test_groups(groups: list[Document], line: str) -> None:
    assert said(*groups) == line


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, "in Delta version 7"),
        (
            {"delta": {"first_version": 5, "last_version": 7}},
            "in Delta one of version 5 to 7",
        ),
        ({"delta": None, "sink": {"called": "PostgreSQL"}}, "into PostgreSQL by pipeline flights"),
        ({"delta": None, "sink": None}, "delivered by pipeline flights"),
        ({"rejected": {"certain": True}}, "rejected by pipeline flights"),
        ({"rejected": {"certain": False}}, "perhaps rejected by pipeline flights"),
        ({"in_doubt": True}, "not known of pipeline flights"),
        ({"row": {"then": "current", "by": None}}, "in Delta version 7, the row now"),
        (
            {"row": {"then": "superseded", "by": {"offset": 9}}},
            "in Delta version 7, superseded by offset 9",
        ),
        ({"row": {"then": None, "by": None}}, "in Delta version 7"),
        ({"row": {"then": "current", "by": None, "also_in": [1]}}, "in Delta version 7"),
        ({"row": {"then": "current", "by": None, "unless_in": [1]}}, "in Delta version 7"),
    ],
)
def test_deliveries(more: Document, line: str) -> None:
    assert said(group("p"), delivered=[delivery(**more)]) == line


def test_a_pipeline_whose_group_waits_is_said_twice() -> None:
    """It delivered the message, and was set back."""
    line = said(group("p", "set_back"), delivered=[delivery()])
    assert line == "in Delta version 7; set back: p"


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ("aborted", "aborted; read by a"),
        ("open", "in an open transaction; read by a"),
        ("unknown", "the end of its transaction is not known; read by a"),
        ("committed", "read by a"),
    ],
)
def test_transactions(state: str, line: str) -> None:
    assert said(group("a"), transaction={"state": state}) == line


def test_what_is_not_known_is_said() -> None:
    unknown = ALL | {"complete": False, "unanswered": [3]}
    assert said(groups=unknown) == "some groups are not known"
    assert said(group("a"), groups=unknown) == "read by a; some groups are not known"
    assert said(state="removed") == "removed; no group has committed offsets"
