"""Groups in a given state, for tests of the deciders."""

from __future__ import annotations

from typing import Any, Final

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import Member
from ottla.groups.classic.requests import JoinRequest
from ottla.groups.classic.state import COMPLETING_REBALANCE, EMPTY, STABLE, GroupState
from ottla.groups.settings import GroupSettings
from ottla.groups.step import Step
from ottla.protocol.errors import ErrorCode

NOW_MS: Final = 5
GENERATION: Final = 3
SESSION_MS, REBALANCE_MS = 10, 100


def new_step(**settings: Any) -> Step:
    return Step(NOW_MS, GroupSettings(**settings))


def group_in(state: GroupState, *members: tuple[str, str | None]) -> ClassicGroup:
    """Generation 3 of group g with members as (id, instance id); the first one leads."""
    group = ClassicGroup("g", 0)
    for member_id, instance_id in members:
        group.add(
            Member(
                member_id,
                instance_id,
                "c",
                "h",
                REBALANCE_MS,
                SESSION_MS,
                "consumer",
                {"range": b"subscription"},
            )
        )
    assert bool(members) or state is EMPTY
    group.state, group.generation = state, GENERATION
    if state in (STABLE, COMPLETING_REBALANCE):
        group.protocol_name = "range"
    return group


def join_request(member_id: str, **changes: Any) -> JoinRequest:
    request = JoinRequest(
        token=f"join {member_id}",
        group="g",
        member_id=member_id,
        group_instance_id=None,
        new_member_id="made",
        client_id="c",
        client_host="h",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        protocol_type="consumer",
        protocols=(("range", b"subscription"),),
    )
    return request._replace(**changes)


def answers(step: Step) -> dict[Any, ErrorCode]:
    """Token to error."""
    return {reply.token: reply.result.error for reply in step.replies}
