"""Makes a group rebalance, by Kafka's own protocols.

One more member joins. In a classic group that begins a rebalance (KIP-394: the first answer is only
a member id), and it leaves before the others have joined again. So the group rebalances once, and
stays as it was. In a consumer or share group it takes partitions before it leaves
(`extra_member`). In a streams group a new member would have to bring the application's topology,
of which a description does not have all. So one of its members is left in its name, as in
`expired_member`: the others get its tasks, and it joins again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any, Final

from ottla.client.addresses import addresses
from ottla.client.admin.groups import CLASSIC, STREAMS, Group, described_groups, listed_groups
from ottla.client.client import Client
from ottla.client.connection import open_connection
from ottla.client.coordinators import Coordinated
from ottla.client.errors import NoAnswerError
from ottla.client.question import Question
from ottla.client.security import security_of
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.testing.broker_request import ask_broker, kit_client
from ottla.testing.errors import KitError, is_for_the_test
from ottla.testing.extra_member import join_and_leave
from ottla.testing.fault_rule import KIT_CLIENT_ID
from ottla.testing.member_heartbeat import LEAVES, beat

__tracebackhide__ = is_for_the_test

_JOIN, _LEAVE, _DESCRIBE = 11, 13, 15
_JOIN_VERSION: Final = 5
_JOIN_WAIT_S: Final = 0.01
_SESSION_MS: Final = 30_000
_CONNECT_S: Final = 10.0
_BEGINS_WITHIN_S: Final = 10.0
_POLL_S: Final = 0.005
STABLE: Final = "Stable"


def rebalance_readers(
    bootstrap: str, topic: str, settings: Mapping[str, str] | None = None
) -> list[str]:
    """Each group of which a member has a partition of the topic rebalances, one after the other;
    returns their names. Raises KitError if there is none, and as `force_rebalance`.
    """
    with kit_client(bootstrap, settings=settings) as client:
        names = [each.group for each in listed_groups(client)]
        readers = [
            name
            for name, group in described_groups(client, names).items()
            if any(each.topic == topic for one in group.members for each in one.assignment)
        ]
    if not readers:
        raise KitError(f"no member of a group has a partition of topic {topic}")
    for name in readers:
        force_rebalance(bootstrap, name, settings)
    return readers


def force_rebalance(bootstrap: str, group: str, settings: Mapping[str, str] | None = None) -> None:
    """Returns when the rebalance of a classic or streams group has begun, or when that of another
    one has moved partitions; `bootstrap` is one broker's address, `settings` are the kit's about
    security. Raises KitError if a classic group is not stable, which is the only state that a
    rebalance can begin in, if nothing would move, and if a streams group has no members.
    """
    with kit_client(bootstrap, settings=settings) as client:
        found = described_groups(client, [group]).get(group)
        if found is not None and found.type == STREAMS:
            _leave_as_one(client, found)
            return
        if found is not None and found.type != CLASSIC:
            join_and_leave(client, found)
            return
    _force_classic(bootstrap, group, settings)


def _leave_as_one(client: Client, group: Group) -> None:
    """In the name of the member whose id comes first among those that have tasks."""
    if not group.members:
        raise KitError(f"group {group.name} cannot rebalance: it has no members")
    member = min(group.members, key=lambda each: (not each.assignment, each.member_id))
    beat(client, STREAMS, group.name, member.member_id, LEAVES, instance_id=member.instance_id)


def _force_classic(bootstrap: str, group: str, settings: Mapping[str, str] | None) -> None:
    settings = settings or {}
    address = _coordinator(bootstrap, group, settings)
    described = _describe(address, group, settings)
    if described.group_state != STABLE:
        state = described.group_state or "unknown"
        raise KitError(f"group {group} cannot rebalance: its state is {state}, not {STABLE}")
    member_id = ask_broker(address, _join(group, "", described), settings=settings).member_id
    (broker,) = addresses(address)
    with closing(
        open_connection(broker, security_of(settings), KIT_CLIENT_ID, _CONNECT_S, _CONNECT_S)
    ) as connection:
        # The response comes when all members have joined again: nobody waits for it.
        with suppress(NoAnswerError):
            join = _join(group, member_id, described)
            connection.ask(Question(_JOIN, _JOIN_VERSION, lambda _: join), _JOIN_WAIT_S)
        _wait_until_begun(address, group, settings)
        build = messages_of(_LEAVE, 4, "request")
        leaving = build.MemberIdentity(member_id=member_id)
        leave = build.LeaveGroupRequest(group_id=group, members=(leaving,))
        ask_broker(address, leave, settings=settings)


def _coordinator(bootstrap: str, group: str, settings: Mapping[str, str]) -> str:
    with kit_client(bootstrap, settings=settings) as client:
        (found,) = client.find_coordinators(Coordinated.GROUP, [group])
    if found.error is not ErrorCode.none:
        raise KitError(f"group {group} has no coordinator: {found.error.name.upper()}")
    return str(found.broker.address)


def _describe(address: str, group: str, settings: Mapping[str, str]) -> Any:
    build = messages_of(_DESCRIBE, 5, "request")
    request = build.DescribeGroupsRequest(groups=(group,))
    return ask_broker(address, request, settings=settings).groups[0]


def _join(group: str, member_id: str, described: Any) -> Any:
    """Joins with the protocol that the members have chosen, and the subscription of one of them."""
    build = messages_of(_JOIN, _JOIN_VERSION, "request")
    protocol = build.JoinGroupRequestProtocol(
        name=described.protocol_data, metadata=described.members[0].member_metadata
    )
    return build.JoinGroupRequest(
        group_id=group,
        session_timeout=_SESSION_MS,
        rebalance_timeout=_SESSION_MS,
        member_id=member_id,
        protocol_type=described.protocol_type,
        protocols=(protocol,),
    )


def _wait_until_begun(address: str, group: str, settings: Mapping[str, str]) -> None:
    until = time.monotonic() + _BEGINS_WITHIN_S
    while _describe(address, group, settings).group_state == STABLE:
        if time.monotonic() > until:
            raise KitError(f"group {group} did not rebalance within {_BEGINS_WITHIN_S:g} s")
        time.sleep(_POLL_S)
