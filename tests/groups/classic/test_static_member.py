"""A static member comes back under another id: it keeps its place, the old id is fenced."""

from __future__ import annotations

from typing import Any

import pytest
from tests.groups.classic.members import answers, group_in, join_request, new_step

from ottla.groups.classic.requests import JoinRequest
from ottla.groups.classic.state import (
    COMPLETING_REBALANCE,
    PREPARING_REBALANCE,
    STABLE,
    GroupState,
)
from ottla.groups.classic.static_member import replace_static
from ottla.groups.classic.timers import heartbeat_key
from ottla.groups.step import Step
from ottla.groups.stored import GroupMetadataValue
from ottla.protocol.errors import ErrorCode
from ottla.shards.step import CancelTimer

A, S = ("a", None), ("s", "i")
FENCED = ErrorCode.fenced_instance_id


def request(**changes: Any) -> JoinRequest:
    return join_request("", group_instance_id="i", new_member_id="s2", **changes)


def stored(step: Step) -> GroupMetadataValue:
    (record,) = step.records
    assert isinstance(record.value, GroupMetadataValue)
    return record.value


def test_a_stable_group_stores_the_new_id_and_goes_on() -> None:
    group, step = group_in(STABLE, A, S), new_step()
    group.members["s"].assignment = b"mine"
    group.park_sync(group.members["s"], "sync s", new_step())
    replace_static(group, request(session_timeout_ms=77), step)
    assert (list(group.members), step.replies) == (["a", "s"], []), "not applied yet"
    kept = stored(step).members[-1]
    assert (kept.member_id, kept.assignment, kept.session_timeout_ms) == ("s2", b"mine", 77)
    group.apply(stored(step))
    later = new_step()
    assert step.when_appended is not None
    step.when_appended(later)
    assert answers(later) == {"sync s": FENCED, "join ": ErrorCode.none}
    assert (group.state, group.static_members) == (STABLE, {"i": "s2"})
    assert CancelTimer(heartbeat_key(group, "s")) in later.timers


@pytest.mark.parametrize(
    ("supports_skip", "leader", "skips", "members"),
    [(True, "s2", True, 2), (False, "s", False, 0)],
)
def test_a_leader_that_returns_does_not_assign_again(
    supports_skip: bool, leader: str, skips: bool, members: int
) -> None:
    """KIP-814; an older client gets the leader's old id, so that it does not see it leads."""
    group, step = group_in(STABLE, S, A), new_step()
    replace_static(group, request(supports_skip_assignment=supports_skip), step)
    assert stored(step).leader == "s2"
    group.apply(stored(step))
    later = new_step()
    assert step.when_appended is not None
    step.when_appended(later)
    result = later.replies[-1].result
    assert (result.leader, result.skip_assignment, len(result.members)) == (leader, skips, members)


def test_other_protocols_begin_a_rebalance_in_a_stable_group() -> None:
    group, step = group_in(STABLE, S), new_step()
    replace_static(group, request(protocols=(("sticky", b""),)), step)
    assert (step.records, list(group.members)) == ([], ["s2"])
    assert group.state is COMPLETING_REBALANCE, "all have joined"
    assert answers(step) == {"join ": ErrorCode.none}


@pytest.mark.parametrize("state", [COMPLETING_REBALANCE, PREPARING_REBALANCE])
def test_in_a_rebalance_the_member_joins_under_its_new_id(state: GroupState) -> None:
    group, step = group_in(state, A, S), new_step()
    if state is PREPARING_REBALANCE:
        group.park_join(group.members["s"], "join s", new_step())
        waiting = "join s"
    else:
        group.park_sync(group.members["s"], "sync s", new_step())
        waiting = "sync s"
    replace_static(group, request(), step)
    assert answers(step) == {waiting: FENCED}
    assert (list(group.members), group.awaiting_join) == (["a", "s2"], 1)
    assert group.state is PREPARING_REBALANCE
