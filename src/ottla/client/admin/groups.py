"""Groups of consumers: listing, describing and deleting them.

Groups of the classic protocol are described by DescribeGroups, those of KIP-848 by
ConsumerGroupDescribe, share groups (KIP-932) by ShareGroupDescribe, streams groups (KIP-1071) by
StreamsGroupDescribe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ottla.client.admin.streams_topology import Topology, active_partitions, topology_of
from ottla.client.client import Client
from ottla.client.coordinators import Coordinated
from ottla.client.errors import ClientError, Needs, RefusedError, UnsupportedError, reason_of
from ottla.client.question import Question
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import DecodeError, ErrorCode
from ottla.protocol.messages import Messages
from ottla.protocol.versions import (
    CONSUMER_GROUP_DESCRIBE,
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
)

DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
DELETE_GROUPS: Final = 42
CONSUMER: Final = "consumer"
"""The protocol type of consumers; groups of other clients have another."""
CLASSIC: Final = "classic"
SHARE: Final = "share"
"""A share group: the type, and that of its protocol."""
STREAMS: Final = "streams"
"""The same of a streams group, whose members are threads of Kafka Streams."""
STATES: Final = {
    "PreparingRebalance": "preparing rebalancing",
    "CompletingRebalance": "completing rebalancing",
    "NotReady": "not ready",
}
"""States that are more than one word."""
DEAD: Final = "dead"
UNKNOWN: Final = "unknown"
VERSION_BYTES: Final = 2


class ListedGroup(NamedTuple):
    """A group; what the broker does not say is "unknown"."""

    group: str
    state: str
    type: str


class Member(NamedTuple):
    """A member of a group, with the partitions that it reads."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]


class Group(NamedTuple):
    """A group as its coordinator describes it."""

    name: str
    state: str
    """`stable`, `empty`, `preparing rebalancing` ..."""
    type: str
    assignor: str | None
    coordinator: int
    is_simple: bool
    """Whether it only has committed offsets, and never had members."""
    members: tuple[Member, ...]
    topology: Topology | None = None
    """Of a streams group."""


def listed_groups(client: Client) -> list[ListedGroup]:
    """All groups of consumers that the brokers know, by name. Left out are those of brokers that do
    not respond while others do.
    """

    def build(messages: Messages) -> Any:
        return messages.ListGroupsRequest()

    found: list[ListedGroup] = []
    failure: ClientError | None = None
    responded = False
    for number in sorted(client.metadata([]).brokers):
        try:
            response = client.ask_broker(number, Question(LIST_GROUPS, 5, build))
            if response.error_code is not ErrorCode.none:
                raise RefusedError("list the groups", response.error_code, None, Needs("Describe"))
        except ClientError as error:
            failure = error
            continue
        responded = True
        found += [
            ListedGroup(
                each.group_id,
                state_name(getattr(each, "group_state", "")),
                (getattr(each, "group_type", "") or UNKNOWN).lower(),
            )
            for each in response.groups
            if each.protocol_type in ("", CONSUMER, SHARE, STREAMS)
        ]
    if failure is not None and not responded:
        raise failure
    return sorted(found)


def described_groups(client: Client, names: Iterable[str]) -> dict[str, Group]:
    """The groups by name, without those that do not exist. Raises RefusedError."""
    wanted = list(dict.fromkeys(names))
    found = _of_new_protocol(client, wanted, CONSUMER)
    asked = client.ask_coordinators(
        Coordinated.GROUP,
        [name for name in wanted if name not in found],
        lambda some: Question(DESCRIBE_GROUPS, 6, _describe(some)),
        lambda response: ((each.group_id, each) for each in response.groups),
    )
    for name, (broker, each) in asked.items():
        if each.error_code is ErrorCode.group_id_not_found:
            continue
        if each.error_code is not ErrorCode.none:
            message = getattr(each, "error_message", None)
            raise RefusedError(
                f"describe group {name!r}", each.error_code, message, Needs("Describe", name)
            )
        group = _classic(each, broker.id)
        # Before KIP-1043 a broker describes an unknown group as a dead one.
        if group.state != DEAD:
            found[name] = group
    found |= _of_new_protocol(client, [name for name in wanted if name not in found], SHARE)
    found |= _streams_groups(client, [name for name in wanted if name not in found])
    return {name: found[name] for name in wanted if name in found}


def _describe(names: Sequence[str]) -> Any:
    def build(messages: Messages) -> Any:
        return messages.DescribeGroupsRequest(groups=tuple(names))

    return build


class _Describe(NamedTuple):
    """The request that describes groups of one of the newer types."""

    key: int
    version: int
    request: str


_DESCRIBE_NEWER: Final = {
    CONSUMER: _Describe(CONSUMER_GROUP_DESCRIBE, 1, "ConsumerGroupDescribeRequest"),
    SHARE: _Describe(SHARE_GROUP_DESCRIBE, 1, "ShareGroupDescribeRequest"),
    STREAMS: _Describe(STREAMS_GROUP_DESCRIBE, 1, "StreamsGroupDescribeRequest"),
}


def _asked(client: Client, names: Sequence[str], kind: str) -> dict[str, tuple[Any, Any]]:
    """The broker that has each group of this type, and what it says of it; none on brokers without
    such groups.
    """
    of = _DESCRIBE_NEWER[kind]

    def describe(some: Sequence[str]) -> Question:
        def build(messages: Messages) -> Any:
            more = {"include_topology_description": True} if kind == STREAMS else {}
            return getattr(messages, of.request)(group_ids=tuple(some), **more)

        return Question(of.key, of.version, build)

    if not names:
        return {}
    try:
        asked = client.ask_coordinators(
            Coordinated.GROUP,
            names,
            describe,
            lambda response: ((each.group_id, each) for each in response.groups),
        )
    except UnsupportedError:
        return {}
    return {name: found for name, found in asked.items() if found[1].error_code is ErrorCode.none}


def _of_new_protocol(client: Client, names: Sequence[str], kind: str) -> dict[str, Group]:
    """Those of KIP-848, or share groups."""
    return {
        name: Group(
            name,
            state_name(each.group_state),
            kind,
            each.assignor_name or None,
            broker.id,
            False,
            tuple(
                Member(
                    member.member_id,
                    getattr(member, "instance_id", None),
                    member.client_id,
                    member.client_host,
                    tuple(
                        TopicPartition(topic.topic_name, index)
                        for topic in member.assignment.topic_partitions
                        for index in topic.partitions
                    ),
                )
                for member in each.members
            ),
        )
        for name, (broker, each) in _asked(client, names, kind).items()
    }


def _streams_groups(client: Client, names: Sequence[str]) -> dict[str, Group]:
    found = {}
    for name, (broker, each) in _asked(client, names, STREAMS).items():
        topology = topology_of(each)
        existing = client.metadata(topology.read_topics).leaders if each.members else {}
        members = tuple(
            Member(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                active_partitions(member, topology, existing),
            )
            for member in each.members
        )
        state = state_name(each.group_state)
        assignor = getattr(each, "assignor_name", None)
        found[name] = Group(name, state, STREAMS, assignor, broker.id, False, members, topology)
    return found


def _classic(each: Any, coordinator: int) -> Group:
    return Group(
        each.group_id,
        state_name(each.group_state),
        CLASSIC,
        each.protocol_data or None,
        coordinator,
        not each.protocol_type,
        tuple(
            Member(
                member.member_id,
                getattr(member, "group_instance_id", None),
                member.client_id,
                member.client_host,
                _assignment(member.member_assignment),
            )
            for member in each.members
        ),
    )


def _assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """In the consumer protocol's format: an int16 version, and the partitions by topic. Empty for
    other bytes, which are those of another kind of client.
    """
    # Imported late: few commands need them.
    from kio.schema.consumer_protocol_assignment.v0.data import ConsumerProtocolAssignment

    from ottla.protocol.codec import decode

    if not data:
        return ()
    try:
        found, _ = decode(ConsumerProtocolAssignment, data, VERSION_BYTES)
    except DecodeError:
        return ()
    return tuple(
        TopicPartition(each.topic, index)
        for each in found.assigned_partitions
        for index in each.partitions
    )


def state_name(state: str) -> str:
    """Kafka's `PreparingRebalance` as `preparing rebalancing`."""
    return STATES.get(state, state.lower()) or UNKNOWN


def delete_group(client: Client, group: str) -> None:
    """Deletes a group with its committed offsets. Raises RefusedError."""

    def build(messages: Messages) -> Any:
        return messages.DeleteGroupsRequest(groups_names=(group,))

    asked = client.ask_coordinators(
        Coordinated.GROUP,
        [group],
        lambda _: Question(DELETE_GROUPS, 3, build),
        lambda response: ((each.group_id, each) for each in response.results),
    )
    answer = asked[group][1]
    code, message = answer.error_code, getattr(answer, "error_message", None)
    if code is not ErrorCode.none:
        raise RefusedError(f"delete group {group!r}", code, message, Needs("Delete", group))


def why_no_coordinator(client: Client, group: str) -> str | None:
    """The broker's reason as a part of a sentence; None if the group has a coordinator."""
    (found,) = client.find_coordinators(Coordinated.GROUP, [group])
    if found.error is ErrorCode.none:
        return None
    return reason_of(found.error, found.message)
