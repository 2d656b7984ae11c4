"""Why one group has not read a message: each reason, in the order in which they stop it."""

from typing import Any

import pytest

from ottla.journey.why_not_read import GroupNow, MemberNow, why_not_read

READER = MemberNow("m-1", "airport", "/127.0.0.1", has_partition=True)
OTHER = MemberNow("m-2", "airport", "/127.0.0.1", has_partition=False)
READING = GroupNow("stable", False, [OTHER, READER])
BEHIND = {
    "group": "g",
    "state": "not_yet",
    "committed_offset": 5,
    "committed_ms": 1000,
    "behind": 3,
}
IS_BEHIND = {"why": "behind", "behind": 3, "committed_offset": 5, "committed_ms": 1000}
ASSIGNED = {
    "why": "assigned",
    "member_id": "m-1",
    "client_id": "airport",
    "host": "/127.0.0.1",
    "committed_ms": 1000,
}
PASSED = {"group": "g", "state": "read", "committed_offset": 9, "committed_ms": 1000}


def document(*read: dict[str, Any], **more: Any) -> dict[str, Any]:
    known = {"complete": True, "unanswered": [], "without_leader": 0, "left_out": 0}
    return {
        "state": "stored",
        "log": {"end_offset": 20, "high_watermark": 18},
        "replicated": {"committed": True},
        "read_committed": {"state": "visible", "last_stable_offset": 18, "held_by": None},
        "read": list(read),
        "groups": known,
        **more,
    }


def waiting_at(offset: int) -> dict[str, Any]:
    return {"read_committed": {"state": "waiting", "last_stable_offset": offset}}


@pytest.mark.parametrize(
    ("read", "more", "now", "state", "reasons"),
    [
        ([PASSED | {"certain": True, "doubt": None}], {}, READING, "read", []),
        ([BEHIND], {}, READING, "not_yet", [IS_BEHIND, ASSIGNED]),
        (
            [BEHIND],
            {},
            GroupNow("stable", False, [OTHER]),
            "not_yet",
            [IS_BEHIND, {"why": "not_assigned", "members": 1}],
        ),
        (
            [BEHIND],
            {},
            GroupNow("empty", False, []),
            "not_yet",
            [IS_BEHIND, {"why": "no_members", "is_simple": False}],
        ),
        (
            [BEHIND],
            {},
            GroupNow("preparing rebalancing", False, [READER]),
            "not_yet",
            [IS_BEHIND, {"why": "rebalancing", "state": "preparing rebalancing"}],
        ),
        (
            [BEHIND],
            waiting_at(5),
            READING,
            "not_yet",
            [
                IS_BEHIND,
                {"why": "open_transaction", "last_stable_offset": 5, "is_there": True},
                ASSIGNED,
            ],
        ),
        (
            [BEHIND],
            waiting_at(6),
            READING,
            "not_yet",
            [
                IS_BEHIND,
                {"why": "open_transaction", "last_stable_offset": 6, "is_there": False},
                ASSIGNED,
            ],
        ),
        (
            [BEHIND],
            {"read_committed": {"state": "aborted", "last_stable_offset": 18}},
            READING,
            "not_yet",
            [IS_BEHIND, {"why": "not_visible", "state": "aborted"}, ASSIGNED],
        ),
        (
            [BEHIND],
            {"replicated": {"committed": False}},
            READING,
            "not_yet",
            [IS_BEHIND, {"why": "not_replicated", "high_watermark": 18}, ASSIGNED],
        ),
        (
            [],
            {"state": "not_yet_written", "replicated": None, "read_committed": None},
            None,
            "no_offset",
            [{"why": "not_written", "end_offset": 20}, {"why": "no_offset"}, {"why": "no_group"}],
        ),
        (
            [],
            {"groups": {"complete": False, "unanswered": [3]}},
            None,
            "unknown",
            [{"why": "coordinator_unknown", "unanswered": [3]}],
        ),
        (
            [],
            {},
            READING,
            "no_offset",
            [{"why": "no_offset"}, ASSIGNED | {"committed_ms": None}],
        ),
        (
            [
                PASSED
                | {"state": "set_back", "certain": True, "doubt": None}
                | {"set_back": {"at_ms": 2000, "to_offset": 0}}
                | {"forgotten": None}
            ],
            {},
            READING,
            "set_back",
            [{"why": "set_back", "at_ms": 2000, "to_offset": 0}, ASSIGNED],
        ),
        (
            [
                PASSED
                | {"certain": False, "doubt": "outside"}
                | {"forgotten": {"at_ms": 3000, "reason": "DeleteGroups"}}
            ],
            {},
            None,
            "read",
            [
                {"why": "forgotten", "at_ms": 3000, "reason": "DeleteGroups"},
                {"why": "doubt", "doubt": "outside"},
            ],
        ),
    ],
)
def test_the_reasons(
    read: list[dict[str, Any]],
    more: dict[str, Any],
    now: GroupNow | None,
    state: str,
    reasons: list[dict[str, Any]],
) -> None:
    asked = why_not_read(document(*read, **more), "g", now)
    assert asked == {"group": "g", "state": state, "reasons": reasons}


SHARED = {
    "group": "g",
    "state": "available",
    "member": None,
    "since_ms": None,
    "lock_until_ms": None,
    "delivery_count": 2,
}
SHARING = GroupNow("stable", False, [OTHER, READER], is_shared=True)


@pytest.mark.parametrize(
    ("shared", "more", "now", "state", "reasons"),
    [
        ([], {}, SHARING, "not_yet", [{"why": "shared", "members": 1}]),
        (
            [SHARED],
            {},
            SHARING,
            "available",
            [{"why": "given_back", "delivery_count": 2}, {"why": "shared", "members": 1}],
        ),
        (
            [SHARED | {"state": "not_yet"}],
            waiting_at(5),
            SHARING._replace(members=[]),
            "not_yet",
            [
                {
                    "why": "open_transaction",
                    "last_stable_offset": 5,
                    "is_there": False,
                    "setting": "share.isolation.level",
                },
                {"why": "no_members", "is_simple": False},
            ],
        ),
        (
            [SHARED | {"state": "not_yet"}],
            {"replicated": {"committed": False}},
            SHARING._replace(members=[OTHER]),
            "not_yet",
            [
                {"why": "not_replicated", "high_watermark": 18},
                {"why": "not_assigned", "members": 1},
            ],
        ),
        (
            [SHARED | {"state": "acquired", "member": "m-1", "since_ms": 1, "lock_until_ms": 9}],
            {},
            SHARING,
            "acquired",
            [{"why": "lock", "member_id": "m-1", "since_ms": 1, "lock_until_ms": 9}],
        ),
        (
            [SHARED | {"group": f"other-{number}"} for number in range(100)],
            {},
            SHARING,
            "unknown",
            [{"why": "left_out", "told": 100}],
        ),
        ([SHARED | {"state": "unknown"}], {}, SHARING, "unknown", [{"why": "state_unknown"}]),
        ([SHARED | {"state": "accepted"}], {}, SHARING, "accepted", []),
        ([SHARED | {"state": "rejected"}], {}, None, "rejected", []),
        (
            [],
            {"state": "not_yet_written", "replicated": None, "read_committed": None},
            SHARING._replace(state="assigning"),
            "not_yet",
            [
                {"why": "not_written", "end_offset": 20},
                {"why": "rebalancing", "state": "assigning"},
            ],
        ),
        (
            [SHARED],
            {},
            None,
            "available",
            [{"why": "given_back", "delivery_count": 2}, {"why": "no_group"}],
        ),
    ],
)
def test_the_reasons_of_a_share_group(
    shared: list[dict[str, Any]],
    more: dict[str, Any],
    now: GroupNow | None,
    state: str,
    reasons: list[dict[str, Any]],
) -> None:
    asked = why_not_read(document(shared=shared, **more), "g", now)
    assert asked == {"group": "g", "state": state, "reasons": reasons}


def test_a_group_that_shared_the_partition_once_and_commits_now() -> None:
    asked = why_not_read(document(BEHIND, shared=[SHARED]), "g", READING)
    assert asked["reasons"] == [IS_BEHIND, ASSIGNED]
