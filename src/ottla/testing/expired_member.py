"""Lets a member of a group be taken for dead, by Kafka's own protocols.

The kit leaves in the member's name. So its partitions go to others, and its next request is refused
with UNKNOWN_MEMBER_ID, as after an expired session: the same for a classic group (LeaveGroup), a
consumer group (KIP-848) and a share group (KIP-932). What differs is the reason in the group's
history. The time of the broker stays as it is, and so do all other members.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ottla.client.admin.groups import SHARE, Group, Member, described_groups
from ottla.client.client import Client
from ottla.client.coordinators import Coordinated
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages
from ottla.testing.broker_request import kit_client
from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

CONSUMER_TYPE: Final = "consumer"
_LEAVE_GROUP: Final = 13
_CONSUMER_HEARTBEAT: Final = 68
_SHARE_HEARTBEAT: Final = 76
_LEAVE_EPOCH: Final = -1
_LEAVE_VERSION: Final = 3
"""The first one that names members."""


def expire_member(
    bootstrap: str,
    group: str,
    client_id: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> str:
    """Returns the id of the member that went; `settings` are the kit's about security. Raises
    KitError unless the group has exactly one member, or one with this client id.
    """
    with kit_client(bootstrap, settings=settings) as client:
        found = described_groups(client, [group]).get(group)
        member = _only(group, found, client_id)
        assert found is not None
        error = _leave(client, found, member)
    if error is not ErrorCode.none:
        raise KitError(f"member {member.member_id} of group {group} stays: {error.name.upper()}")
    return member.member_id


def _only(name: str, group: Group | None, client_id: str | None) -> Member:
    members = () if group is None else group.members
    found = [each for each in members if client_id in (None, each.client_id)]
    if len(found) == 1:
        return found[0]
    ids = ", ".join(sorted({each.client_id for each in members})) or "no members"
    wanted = "" if client_id is None else f" with client id {client_id}"
    raise KitError(
        f"group {name} has {len(found)} members{wanted}, not one; its client ids: {ids}. Name one "
        "that only one member has."
    )


def _leave(client: Client, group: Group, member: Member) -> ErrorCode:
    def classic(build: Messages) -> Any:
        leaving = build.MemberIdentity(
            member_id=member.member_id, group_instance_id=member.instance_id
        )
        return build.LeaveGroupRequest(group_id=group.name, members=(leaving,))

    def modern(kind: str) -> Any:
        def build(messages: Messages) -> Any:
            request = getattr(messages, f"{kind}GroupHeartbeatRequest")
            instance = {} if kind == "Share" else {"instance_id": member.instance_id}
            more = {} if kind == "Share" else {"topic_partitions": None}
            return request(
                group_id=group.name,
                member_id=member.member_id,
                member_epoch=_LEAVE_EPOCH,
                **instance,
                **more,
            )

        return build

    if group.type == SHARE:
        question = Question(_SHARE_HEARTBEAT, 1, modern("Share"))
    elif group.type == CONSUMER_TYPE:
        question = Question(_CONSUMER_HEARTBEAT, 0, modern("Consumer"))
    else:
        question = Question(_LEAVE_GROUP, _LEAVE_VERSION, classic, _LEAVE_VERSION)
    answers = client.ask_coordinators(
        Coordinated.GROUP, [group.name], lambda _: question, lambda answer: [(group.name, answer)]
    )
    answer = answers[group.name][1]
    if group.type in (SHARE, CONSUMER_TYPE) or answer.error_code is not ErrorCode.none:
        return ErrorCode(answer.error_code)
    return ErrorCode(answer.members[0].error_code)
