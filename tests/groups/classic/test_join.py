"""JoinGroup: who is taken in, who has to come back, and who is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.groups.classic.members import (
    GENERATION,
    NOW_MS,
    SESSION_MS,
    answers,
    group_in,
    join_request,
    new_step,
)

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.join import join, refusal, session_timeout_error
from ottla.groups.classic.member import Member
from ottla.groups.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    GroupState,
)
from ottla.groups.settings import GroupSettings
from ottla.groups.step import HeartbeatExpired, TimerKey
from ottla.protocol.errors import ErrorCode
from ottla.shards.step import SetTimer

A, B = ("a", None), ("b", None)
FULL = ErrorCode.group_max_size_reached


def test_a_new_member_is_asked_to_come_back_with_its_id() -> None:
    group, step = group_in(EMPTY), new_step()
    join(group, join_request(""), step)
    (reply,) = step.replies
    assert (reply.result.error, reply.result.member_id) == (ErrorCode.member_id_required, "made")
    assert (list(group.pending_members), group.state) == (["made"], EMPTY)
    event = HeartbeatExpired("g", "made")
    assert step.timers == [SetTimer(TimerKey("heartbeat", "g", "made"), SESSION_MS, event)]


def test_with_its_id_it_joins_and_waits_for_the_generation() -> None:
    group = group_in(EMPTY)
    join(group, join_request(""), new_step())
    step = new_step(new_member_join_timeout_ms=77)
    join(group, join_request("made"), step)
    assert (step.replies, group.state) == ([], PREPARING_REBALANCE)
    assert (list(group.members), list(group.pending_members)) == (["made"], [])
    event = HeartbeatExpired("g", "made")
    assert SetTimer(TimerKey("heartbeat", "g", "made"), 77, event) in step.timers


@pytest.mark.parametrize("instance_id", ["i", "free"])
def test_a_pending_member_does_not_turn_static(instance_id: str) -> None:
    """Whether the instance is free or another member's: the client mixes two ways of joining."""
    group = group_in(STABLE, ("a", "i"), B)
    join(group, join_request(""), new_step())
    step = new_step()
    join(group, join_request("made", group_instance_id=instance_id), step)
    assert answers(step) == {"join made": ErrorCode.unknown_server_error}
    assert (list(group.members), list(group.pending_members)) == (["a", "b"], ["made"])
    assert (group.static_members, group.state) == ({"i": "a"}, STABLE)
    assert not step.records
    assert step.timers == []
    join(group, join_request("made"), step)
    assert list(group.members) == ["a", "b", "made"], "as it was, it may join"


@pytest.mark.parametrize(
    "changes", [{"requires_known_member_id": False}, {"group_instance_id": "i"}]
)
def test_old_clients_and_static_members_join_at_once(changes: dict[str, Any]) -> None:
    group, step = group_in(EMPTY), new_step()
    join(group, join_request("", **changes), step)
    assert (list(group.members), step.replies) == (["made"], [])


def test_ids_that_nobody_comes_back_with_are_limited() -> None:
    group = group_in(EMPTY)
    for number, error in ((1, ErrorCode.member_id_required), (2, FULL)):
        step = new_step(max_pending_members=1)
        join(group, join_request("", new_member_id=f"made {number}"), step)
        assert answers(step) == {"join ": error}
    assert list(group.pending_members) == ["made 1"]


@pytest.mark.parametrize(
    ("state", "member_id", "error"),
    [
        (STABLE, "", FULL),
        (STABLE, "a", ErrorCode.none),
        (COMPLETING_REBALANCE, "x", FULL),
        (PREPARING_REBALANCE, "a", ErrorCode.none),
    ],
)
def test_a_full_group_keeps_its_members_and_takes_no_others(
    state: GroupState, member_id: str, error: ErrorCode
) -> None:
    group, step = group_in(state, A), new_step(max_size=1)
    join(group, join_request(member_id), step)
    assert answers(step).get(f"join {member_id}", ErrorCode.none) is error
    assert list(group.members) == ["a"]


def test_in_a_rebalance_the_places_belong_to_those_who_have_joined() -> None:
    """The limit was lowered: two members are left, and one place."""
    group = group_in(PREPARING_REBALANCE, A, B)
    step = new_step(max_size=1)
    for member_id in ("b", "a"):
        join(group, join_request(member_id), step)
    assert answers(step) == {"join a": FULL}
    assert (list(group.members), group.leader_id, group.awaiting_join) == (["b"], "b", 1)


@pytest.mark.parametrize(
    ("state", "changes", "error"),
    [
        (DEAD, {}, "coordinator_not_available"),
        (STABLE, {"protocol_type": "connect"}, "inconsistent_group_protocol"),
        (STABLE, {"protocols": (("sticky", b""),)}, "inconsistent_group_protocol"),
        (EMPTY, {"protocols": ()}, "inconsistent_group_protocol"),
        (EMPTY, {"protocol_type": ""}, "inconsistent_group_protocol"),
        (EMPTY, {"group_instance_id": "i" * 40_000}, "invalid_request"),
        (
            EMPTY,
            {"protocols": (("range", b"x" * 60), ("sticky", b"x" * 41))},
            "unknown_server_error",
        ),
        (EMPTY, {"protocols": (("range", b"x" * 60), ("sticky", b"x" * 40))}, "none"),
    ],
)
def test_refusals(state: GroupState, changes: dict[str, Any], error: str) -> None:
    group = group_in(state) if state is EMPTY else group_in(state, A)
    settings = GroupSettings(member_metadata_max_bytes=100)
    assert refusal(group, join_request("", **changes), settings) is ErrorCode[error]


def test_a_session_timeout_has_to_be_within_the_brokers_limits() -> None:
    settings = GroupSettings(min_session_timeout_ms=10, max_session_timeout_ms=20)
    bad = ErrorCode.invalid_session_timeout
    found = [
        session_timeout_error(join_request("", session_timeout_ms=each), settings)
        for each in (9, 10, 20, 21)
    ]
    assert found == [bad, ErrorCode.none, ErrorCode.none, bad]


@pytest.mark.parametrize(
    ("state", "member_id", "rebalances"),
    [
        (STABLE, "a", True),
        (STABLE, "b", False),
        (COMPLETING_REBALANCE, "a", False),
        (COMPLETING_REBALANCE, "b", False),
    ],
)
def test_a_member_that_joins_again_without_a_change(
    state: GroupState, member_id: str, rebalances: bool
) -> None:
    """A leader may have seen new partitions; others get the answer of this generation again."""
    group, step = group_in(state, A, B), new_step()
    join(group, join_request(member_id), step)
    if rebalances:
        assert (group.state, step.replies) == (PREPARING_REBALANCE, [])
        return
    (reply,) = step.replies
    assert (reply.result.error, reply.result.generation) == (ErrorCode.none, GENERATION)
    assert len(reply.result.members) == (2 if member_id == "a" else 0)
    assert group.state is state


@pytest.mark.parametrize("state", [STABLE, COMPLETING_REBALANCE])
def test_changed_metadata_begins_a_rebalance(state: GroupState) -> None:
    group, step = group_in(state, A, B), new_step()
    join(group, join_request("b", protocols=(("range", b"other"),)), step)
    assert (group.state, group.state_timestamp_ms) == (PREPARING_REBALANCE, NOW_MS)
    assert group.members["b"].protocols == {"range": b"other"}


def test_an_unknown_id_is_refused() -> None:
    step = new_step()
    join(group_in(STABLE, A), join_request("x"), step)
    assert answers(step) == {"join x": ErrorCode.unknown_member_id}


def test_the_metadata_of_a_generation_is_limited_in_total() -> None:
    """For each protocol by itself: one of them is chosen, and stored for all members."""
    settings = GroupSettings(group_metadata_max_bytes=10)
    group = ClassicGroup("g", 0)

    def joins(member_id: str, *protocols: tuple[str, bytes]) -> ErrorCode:
        asked = join_request(member_id, protocols=protocols)
        return refusal(group, asked, settings)

    assert joins("", ("p", b"x" * 11)) is FULL
    assert joins("", ("p", b"x" * 10), ("q", b"x" * 10)) is ErrorCode.none
    for member_id, size in (("a", 6), ("b", 4)):
        protocols = (("p", b"x" * size), ("q", b""))
        group.add(Member.joining(join_request(member_id, protocols=protocols), member_id))
    assert group.metadata_bytes == {"p": 10, "q": 0}
    assert joins("", ("p", b"x")) is FULL
    assert joins("", ("p", b""), ("q", b"x" * 10)) is ErrorCode.none
    assert joins("a", ("p", b"x" * 7)) is FULL
    assert joins("a", ("p", b"y" * 6)) is ErrorCode.none
    group.remove("b")
    assert group.metadata_bytes == {"p": 6, "q": 0}
    assert joins("a", ("p", b"x" * 10)) is ErrorCode.none


def test_a_static_member_takes_the_room_of_the_one_before_it() -> None:
    settings = GroupSettings(group_metadata_max_bytes=10)
    group = ClassicGroup("g", 0)
    asked = join_request("", protocols=(("p", b"y" * 10),), group_instance_id="i")
    group.add(Member.joining(asked, "a"))
    assert refusal(group, asked, settings) is ErrorCode.none
    other = asked._replace(group_instance_id="j")
    assert refusal(group, other, settings) is FULL
