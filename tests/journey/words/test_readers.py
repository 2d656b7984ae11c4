"""The lines about groups: certain, within bounds, or not known."""

from typing import Any

import pytest

from ottla.journey.words.line import Branch
from ottla.journey.words.tell import tell

MOMENT = {"since_ms": 1000, "until_ms": 1000, "exact": True}
UNKNOWN = {"since_ms": None, "until_ms": None, "exact": False}
ALL = {"complete": True, "unanswered": [], "without_leader": 0, "left_out": 0}
AT = "1970-01-01 00:00:01.000"
LATER = "1970-01-01 00:00:02.000"


def reader(**more: Any) -> dict[str, Any]:
    return {
        "group": "g",
        "state": "read",
        "committed_offset": 9,
        "when": MOMENT,
        "certain": "doubt" not in more,
        "doubt": None,
        "recorded_by": None,
        "first_commit_seen": False,
        "forgotten": None,
        **more,
    }


def lines_of(branch: Branch) -> list[str]:
    return [branch.text(), *(line for below in branch.below for line in lines_of(below))]


def said(*groups: dict[str, Any], **known: Any) -> list[str]:
    """The lines of an offset that is not written: they are the same for each state."""
    document = {
        "topic": "t",
        "partition": 0,
        "offset": 5,
        "state": "not_yet_written",
        "log": {"end_offset": 5},
        "published": None,
        "read": list(groups),
        "delivered": [],
        "groups": ALL | known,
    }
    title, *lines = lines_of(tell(document).below[1])
    return lines or [title]


def test_only_what_a_member_has_committed_is_read() -> None:
    assert said(reader()) == [f"g  read  {AT}"]


@pytest.mark.parametrize(
    ("doubt", "why"),
    [
        ("first_commit", "with its first commit; where it began is not recorded"),
        (
            "no_member",
            "no member committed: a consumer that assigns partitions to itself has read it, or a "
            "reset skipped it",
        ),
        ("outside", "no member of the group committed: most likely a reset, which skipped it"),
        ("not_recorded", "who committed, a member or a reset, is not recorded"),
    ],
)
def test_what_is_in_doubt_has_passed_it(doubt: str, why: str) -> None:
    assert said(reader(doubt=doubt)) == [f"g  passed it  {AT}  ({why})"]


def test_a_commit_before_the_message_is_not_known() -> None:
    ahead = reader(state="not_known", doubt="ahead")
    start = f"g  not known: it committed an offset after this one {AT}, before this message was "
    assert said(ahead) == [f"{start}appended (past the log end)"]
    assert said(ahead | {"recorded_by": 3}) == [
        f"{start}appended (past the log end, or by broker 3's clock)"
    ]
    assert said(ahead | {"doubt": "unordered", "when": UNKNOWN}) == [
        "g  not known: it committed an offset after this one; what is recorded does not "
        "tell whether this message was there then"
    ]
    assert said(ahead | {"doubt": "rewritten", "when": UNKNOWN}) == [
        "g  not known: it passed this offset, perhaps with another record there, which was "
        "truncated"
    ]


def test_a_group_that_was_set_back() -> None:
    back = reader(state="set_back", set_back={"at_ms": 2000, "to_offset": 0})
    assert said(back)[1] == (
        f"set back to offset 0 at {LATER}, and has not reached this offset again"
    )
    back["set_back"]["at_ms"] = None
    assert said(back)[1] == "behind it again: its offset is 0; when it was set back is not recorded"


def test_a_group_whose_offset_was_removed() -> None:
    gone = reader(forgotten={"at_ms": 2000, "reason": "DeleteGroups"}, committed_offset=None)
    place = f"its offset was removed at {LATER} by DeleteGroups"
    assert said(gone) == [f"g  read  {AT}", place]
    again = gone | {"committed_offset": 3}
    assert said(again)[1] == f"{place}; it began again, and is at offset 3"
    gone["forgotten"] = {"at_ms": None, "reason": None}
    assert said(gone)[1] == "its offset was removed; when is not recorded"


def test_the_broker_whose_clock_it_is_is_named() -> None:
    assert said(reader(recorded_by=3))[1] == "by the clock of broker 3, which coordinates it"
    assert len(said(reader(recorded_by=3, when=UNKNOWN))) == 1


def test_groups_that_have_not_reached_it() -> None:
    slow = {"group": "slow", "state": "not_yet", "committed_offset": 5, "behind": 1}
    late = {"group": "late", "state": "missed", "committed_offset": 3, "behind": 3}
    assert said(slow, late) == [
        "slow  not yet: 1 message behind",
        "late  missed: it was 3 messages behind, at offset 3",
    ]


def test_only_where_all_are_known_there_is_no_group() -> None:
    assert said() == ["Waiting for it  no group has committed offsets for this partition"]
    unknown = {"complete": False, "unanswered": [2, 3], "without_leader": 1, "left_out": 7}
    assert said(**unknown) == [
        "groups that broker 2 coordinates are not known: it did not answer",
        "groups that broker 3 coordinates are not known: it did not answer",
        "groups that 1 partition of __consumer_offsets should have are not known: it has no leader",
        "7 more groups have offsets for this partition; to list them: ottla group list",
    ]
