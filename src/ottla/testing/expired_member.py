"""Lets a member of a group be taken for dead, by Kafka's own protocols.

The kit leaves in the member's name. So its partitions go to others, and its next request is refused
with UNKNOWN_MEMBER_ID, as after an expired session: the same for a classic group (LeaveGroup), a
consumer group (KIP-848), a share group (KIP-932) and a streams group (KIP-1071). What differs is
the reason in the group's history. The time of the broker stays as it is, and so do all other
members.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ottla.client.admin.groups import CLASSIC, SHARE, Member
from ottla.client.client import Client
from ottla.client.coordinators import Coordinated
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages
from ottla.testing.broker_request import kit_client
from ottla.testing.errors import KitError, is_for_the_test
from ottla.testing.member_heartbeat import LEAVES, beat, only_member

__tracebackhide__ = is_for_the_test

_LEAVE_GROUP: Final = 13
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
        kind, member = only_member(client, group, client_id)
        if kind == CLASSIC:
            _leave_classic(client, group, member)
        else:
            instance = {} if kind == SHARE else {"instance_id": member.instance_id}
            beat(client, kind, group, member.member_id, LEAVES, **instance)
    return member.member_id


def _leave_classic(client: Client, group: str, member: Member) -> None:
    def build(messages: Messages) -> Any:
        leaving = messages.MemberIdentity(
            member_id=member.member_id, group_instance_id=member.instance_id
        )
        return messages.LeaveGroupRequest(group_id=group, members=(leaving,))

    question = Question(_LEAVE_GROUP, _LEAVE_VERSION, build, _LEAVE_VERSION)
    answer = client.ask_coordinator(Coordinated.GROUP, group, question, f"leave group {group!r}")
    error = answer.members[0].error_code
    if error is not ErrorCode.none:
        raise KitError(f"member {member.member_id} of group {group} stays: {error.name.upper()}")
