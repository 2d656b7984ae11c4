"""Why a group has not read a message, in words."""

from typing import Any

import pytest

from ottla.journey.words.asked_group import format_reason, grow_asked_group
from ottla.journey.words.clock import Clock
from ottla.journey.words.tell import tell

DOCUMENT: dict[str, Any] = {"published": None, "asked_ms": 91_000}


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ({"why": "not_written", "end_offset": 20}, "the log ends at offset 20"),
        ({"why": "coordinator_unknown", "unanswered": [3]}, "perhaps broker 3"),
        ({"why": "no_group"}, "there is no such group"),
        ({"why": "no_offset"}, "it has committed nothing for this partition"),
        (
            {"why": "forgotten", "at_ms": 2000, "reason": "DeleteGroups"},
            "its offset was removed at 1970-01-01 00:00:02.000 by DeleteGroups",
        ),
        ({"why": "forgotten", "at_ms": None, "reason": None}, "its offset was removed"),
        ({"why": "set_back", "at_ms": None, "to_offset": 3}, "it was set back to offset 3"),
        ({"why": "doubt", "doubt": "outside"}, "most likely a reset, which skipped it"),
        ({"why": "doubt", "doubt": "ahead"}, "its commit came before the message, see above"),
        ({"why": "not_replicated", "high_watermark": 7}, "the high watermark is 7"),
        ({"why": "not_visible", "state": "aborted"}, "it is of an aborted transaction"),
        (
            {"why": "open_transaction", "last_stable_offset": 5, "is_there": True},
            "under isolation.level=read_committed it waits at offset 5, see Transaction",
        ),
        (
            {"why": "open_transaction", "last_stable_offset": 5, "is_there": False},
            "it will stop at offset 5",
        ),
        (
            {"why": "behind", "behind": 3, "committed_offset": 5, "committed_ms": 1000},
            "3 messages behind: its offset is 5, committed at 1970-01-01 00:00:01.000",
        ),
        ({"why": "no_members", "is_simple": False}, "no consumer reads as this group now"),
        ({"why": "no_members", "is_simple": True}, "assigns partitions to itself, or is gone"),
        ({"why": "rebalancing", "state": "preparing rebalancing"}, "preparing rebalancing"),
        (
            {"why": "not_assigned", "members": 2},
            "assigned to nobody: none of its 2 members has this partition",
        ),
        (
            {"why": "assigned", "client_id": "c", "host": "/h", "committed_ms": 1000},
            "assigned to client c at /h; the last commit is 1 min 30 s ago",
        ),
        (
            {"why": "assigned", "client_id": "c", "host": "/h", "committed_ms": None},
            "which has committed nothing for this partition",
        ),
        (
            {"why": "open_transaction", "last_stable_offset": 5, "is_there": False}
            | {"setting": "share.isolation.level"},
            "under share.isolation.level=read_committed it will stop at offset 5",
        ),
        ({"why": "left_out", "told": 100}, "tells 100 share groups, and it is not among them"),
        ({"why": "state_unknown"}, "its share coordinator did not answer"),
        (
            {"why": "lock", "member_id": "m", "since_ms": 1000, "lock_until_ms": 31_000},
            "member m has it since 1970-01-01 00:00:01.000, until 1970-01-01 00:00:31.000 at the",
        ),
        (
            {"why": "lock", "member_id": "m", "since_ms": None, "lock_until_ms": None},
            "member m has it",
        ),
        (
            {"why": "given_back", "delivery_count": 1},
            "after 1 delivery it waits for the next member",
        ),
        ({"why": "given_back", "delivery_count": 2}, "after 2 deliveries it waits"),
        ({"why": "shared", "members": 1}, "one member reads this partition"),
        ({"why": "shared", "members": 2}, "2 members read this partition, and none has"),
    ],
)
def test_each_reason_has_words(reason: dict[str, Any], said: str) -> None:
    assert said in format_reason(reason, DOCUMENT, Clock(DOCUMENT))


@pytest.mark.parametrize(
    ("state", "reasons", "title"),
    [
        ("read", [], "Group  g  has read it"),
        (
            "read",
            [{"why": "doubt", "doubt": "outside"}],
            "Group  g  has passed it; whether it has read it is not known",
        ),
        ("accepted", [], "Group  g  has accepted it"),
        (
            "available",
            [{"why": "given_back", "delivery_count": 1}],
            "Group  g  has given it back",
        ),
        ("no_offset", [{"why": "no_offset"}], "Group  g  has committed nothing for this partition"),
    ],
)
def test_the_branch_of_the_group(state: str, reasons: list[dict[str, Any]], title: str) -> None:
    document = {
        **DOCUMENT,
        "topic": "t",
        "partition": 0,
        "offset": 5,
        "state": "not_yet_written",
        "log": {"end_offset": 5},
        "read": [],
        "delivered": [],
        "asked_group": {"group": "g", "state": state, "reasons": reasons},
    }
    branch = tell(document).below[-1]
    assert branch.text() == title
    assert len(branch.below) == len(reasons)
    del document["asked_group"]
    count = len(tell(document).below)
    grow_asked_group(tell(document), document)
    assert len(tell(document).below) == count
