"""Heartbeats of the newer group protocols (KIP-848, KIP-932, KIP-1071), as the kit sends them: as a
member of its own, or in the name of a client's.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ottla.client.admin.groups import CONSUMER, SHARE, STREAMS, Member, described_groups
from ottla.client.client import Client
from ottla.client.coordinators import Coordinated
from ottla.client.question import Question
from ottla.protocol.messages import Messages
from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

LEAVES: Final = -1
JOINS: Final = 0


class _Protocol(NamedTuple):
    """Its heartbeat and its description: key, version, and the name of both requests."""

    heartbeat: int
    version: int
    describe: int
    describe_version: int
    name: str


_PROTOCOLS: Final = {
    CONSUMER: _Protocol(68, 1, 69, 1, "ConsumerGroup"),
    SHARE: _Protocol(76, 1, 77, 1, "ShareGroup"),
    STREAMS: _Protocol(88, 0, 89, 0, "StreamsGroup"),
}


def beat(
    client: Client, group_type: str, group: str, member_id: str, epoch: int, **fields: Any
) -> Any:
    """The answer to one heartbeat. Raises RefusedError."""
    protocol = _PROTOCOLS[group_type]

    def build(messages: Messages) -> Any:
        request = getattr(messages, f"{protocol.name}HeartbeatRequest")
        return request(group_id=group, member_id=member_id, member_epoch=epoch, **fields)

    return client.ask_coordinator(
        Coordinated.GROUP,
        group,
        Question(protocol.heartbeat, protocol.version, build),
        f"send a heartbeat of member {member_id} of group {group!r}",
    )


def described(client: Client, group_type: str, group: str) -> Any:
    """The group as the protocol's own request describes it, with epochs and subscriptions."""
    protocol = _PROTOCOLS[group_type]

    def build(messages: Messages) -> Any:
        return getattr(messages, f"{protocol.name}DescribeRequest")(group_ids=(group,))

    asked = client.ask_coordinators(
        Coordinated.GROUP,
        [group],
        lambda _: Question(protocol.describe, protocol.describe_version, build),
        lambda response: ((each.group_id, each) for each in response.groups),
    )
    return asked[group][1]


def only_member(client: Client, name: str, client_id: str | None) -> tuple[str, Member]:
    """The group's type, and its only member, or its only one with this client id. Raises
    KitError.
    """
    group = described_groups(client, [name]).get(name)
    members = () if group is None else group.members
    found = [each for each in members if client_id in (None, each.client_id)]
    if group is not None and len(found) == 1:
        return group.type, found[0]
    ids = ", ".join(sorted({each.client_id for each in members})) or "no members"
    wanted = "" if client_id is None else f" with client id {client_id}"
    raise KitError(
        f"group {name} has {len(found)} members{wanted}, not one; its client ids: {ids}. Name one "
        "that only one member has."
    )
