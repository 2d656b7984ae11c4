"""One more member of a consumer group or a share group, which takes partitions and leaves again.

So the group rebalances twice: other members give up what the new one gets, and get it back. Those
of KIP-848 do so one by one, with their next heartbeats; none of them stops as a whole.
"""

from __future__ import annotations

import time
import uuid
from typing import Any, Final

from ottla.client.admin.groups import CONSUMER, Group
from ottla.client.client import Client
from ottla.testing.errors import KitError, counted, is_for_the_test
from ottla.testing.member_heartbeat import JOINS, LEAVES, beat, described

__tracebackhide__ = is_for_the_test

_REBALANCE_MS: Final = 60_000
GETS_WITHIN_S: Final = 30.0
"""Members send heartbeats every five seconds by default, and learn only then what they lose."""
_POLL_S: Final = 0.05


def join_and_leave(client: Client, group: Group) -> None:
    """Returns when the new member has had partitions, and has left. Raises KitError if it gets
    none: a consumer group with as many members as partitions has none to move.
    """
    members = described(client, group.type, group.name).members
    assigned = {each for member in group.members for each in member.assignment}
    if group.type == CONSUMER and len(assigned) <= len(members):
        raise KitError(
            f"group {group.name} would move nothing: it has {counted(len(members), 'member')} for "
            f"{counted(len(assigned), 'partition')}. Give the topic more partitions, or use "
            "fence_member or expire_member."
        )
    topics = {name for member in members for name in member.subscribed_topic_names}
    topics |= {each.topic for each in assigned}
    more: dict[str, Any] = {}
    if group.type == CONSUMER:
        more = {"rebalance_timeout": _REBALANCE_MS, "topic_partitions": ()}
    member_id = str(uuid.uuid4())
    until = time.monotonic() + GETS_WITHIN_S
    answer = beat(
        client,
        group.type,
        group.name,
        member_id,
        JOINS,
        subscribed_topic_names=tuple(sorted(topics)),
        **more,
    )
    try:
        while answer.assignment is None or not answer.assignment.topic_partitions:
            if time.monotonic() > until:
                raise KitError(
                    f"group {group.name} gave a new member nothing within {GETS_WITHIN_S:g} s: do "
                    "its members poll?"
                )
            time.sleep(_POLL_S)
            answer = beat(client, group.type, group.name, member_id, answer.member_epoch)
    finally:
        beat(client, group.type, group.name, member_id, LEAVES)
