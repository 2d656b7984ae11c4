"""Fences a member of a group, by Kafka's own protocols: its next request is refused as Kafka does.

    classic, with group.instance.id     another member takes its place (KIP-345): the client gets
                                        FENCED_INSTANCE_ID, which ends it
    consumer, share, streams            its epoch runs ahead, as if another process used its id:
                                        the client gets FENCED_MEMBER_EPOCH, gives up what it has,
                                        and joins again

The epoch runs ahead by two heartbeats in the member's name, each with a change that begins a new
epoch, and the second one takes the first one back. One would not do: an epoch before is taken for
that of a client that did not get the answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from ottla.client.admin.groups import CLASSIC, SHARE, STREAMS, Member
from ottla.client.client import Client
from ottla.client.coordinators import Coordinated
from ottla.client.question import Question
from ottla.protocol.messages import Messages, messages_of
from ottla.testing.broker_request import kit_client
from ottla.testing.errors import KitError, is_for_the_test
from ottla.testing.fault_rule import KIT_CLIENT_ID
from ottla.testing.member_heartbeat import beat, described, only_member

__tracebackhide__ = is_for_the_test

_JOIN, _DESCRIBE = 11, 15
_JOIN_VERSION, _DESCRIBE_VERSION = 5, 5
_STREAMS_HEARTBEAT: Final = 88
_SESSION_MS: Final = 6_000
"""Of the one that takes a static member's place; the least that Kafka allows by default."""
_MOVES: Final = 2
_MOVES_WITHIN_S: Final = 20.0
"""A new assignment may wait for the assignment interval."""
_POLL_S: Final = 0.05


def fence_member(
    bootstrap: str,
    group: str,
    client_id: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> str:
    """Returns the id of the member that is fenced; `settings` are the kit's about security. Raises
    KitError unless the group has exactly one member, or one with this client id, and for a classic
    member without a group.instance.id, which Kafka never fences.
    """
    with kit_client(bootstrap, settings=settings) as client:
        kind, member = only_member(client, group, client_id)
        if kind == CLASSIC:
            _take_place(client, group, member)
        else:
            _run_ahead(client, kind, group, member.member_id)
    return member.member_id


def _take_place(client: Client, group: str, member: Member) -> None:
    """Another member with the same group.instance.id joins, and stays until its session ends."""
    if member.instance_id is None:
        raise KitError(
            f"member {member.member_id} of group {group} cannot be fenced: it has no "
            "group.instance.id. Use expire_member, which Kafka's members without one meet."
        )
    describe = messages_of(_DESCRIBE, _DESCRIBE_VERSION, "request").DescribeGroupsRequest(
        groups=(group,)
    )
    answer = client.ask_coordinators(
        Coordinated.GROUP,
        [group],
        lambda _: Question(_DESCRIBE, _DESCRIBE_VERSION, lambda _: describe, _DESCRIBE_VERSION),
        lambda response: ((each.group_id, each) for each in response.groups),
    )[group][1]
    (metadata,) = (
        each.member_metadata for each in answer.members if each.member_id == member.member_id
    )

    def join(messages: Messages) -> Any:
        protocol = messages.JoinGroupRequestProtocol(name=answer.protocol_data, metadata=metadata)
        return messages.JoinGroupRequest(
            group_id=group,
            session_timeout=_SESSION_MS,
            rebalance_timeout=_SESSION_MS,
            member_id="",
            group_instance_id=member.instance_id,
            protocol_type=answer.protocol_type,
            protocols=(protocol,),
        )

    client.ask_coordinator(
        Coordinated.GROUP,
        group,
        Question(_JOIN, _JOIN_VERSION, join, _JOIN_VERSION),
        f"take the place of member {member.member_id} of group {group!r}",
    )


def _run_ahead(client: Client, group_type: str, group: str, member_id: str) -> None:
    (member,) = (
        each for each in described(client, group_type, group).members if each.member_id == member_id
    )
    changes = _changes(group_type, member)
    epoch, moves, until = member.member_epoch, 0, time.monotonic() + _MOVES_WITHIN_S
    while moves < _MOVES:
        answer = beat(client, group_type, group, member_id, epoch, **changes[moves])
        if answer.member_epoch > epoch:
            moves += 1
        elif time.monotonic() > until:
            raise KitError(
                f"member {member_id} of group {group} cannot be fenced: it stays in epoch {epoch}; "
                "is the group's assignment interval very long?"
            )
        else:
            time.sleep(_POLL_S)
        epoch = answer.member_epoch


def _changes(group_type: str, member: Any) -> list[dict[str, Any]]:
    """What the member is made to say, one after the other. That it has nothing: it might be about
    to give something up, and stays in its epoch until then.
    """
    if group_type == STREAMS:
        tag = messages_of(_STREAMS_HEARTBEAT, 0, "request").KeyValue
        own = tuple(tag(key=each.key, value=each.value) for each in member.client_tags)
        nothing = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
        return [
            {"client_tags": (*own, tag(key=KIT_CLIENT_ID, value="")), **nothing},
            {"client_tags": own, **nothing},
        ]
    topics = tuple(member.subscribed_topic_names)
    nothing = {} if group_type == SHARE else {"topic_partitions": ()}
    # A topic that is not there: what the member is to have stays the same.
    return [
        {"subscribed_topic_names": (*topics, KIT_CLIENT_ID), **nothing},
        {"subscribed_topic_names": topics, **nothing},
    ]
