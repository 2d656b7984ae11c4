"""Why a share group is not done with a message (KIP-932); beside `why_not_read`. Pure.

The state is that under "shared". The reasons, for a group that is not done with it:

    state_unknown     the share coordinator did not answer
    left_out          a journey has `told` share groups of a partition, and it is not among them
    lock              `member_id` has it, since `since_ms`, until `lock_until_ms` (both may be null)
    given_back        it waits for the next member, after `delivery_count` deliveries
    not_replicated, open_transaction, not_visible
                      as of other groups; whether the latter two stop it, its `setting` says
    no_members, rebalancing, not_assigned
                      as of other groups
    shared            `members` members have the partition
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.journey.shared import MAX_GROUPS

Document = dict[str, Any]
ISOLATION: Final = "share.isolation.level"


class Readers(NamedTuple):
    """Of the members of a group."""

    state: str
    members: int
    with_partition: int


def why_not_shared(
    group: str, told: Sequence[Document], of_partition: list[Document], readers: Readers | None
) -> tuple[str, list[Document]]:
    """The state, and the reasons. `told`: what is under "shared"; without the group, nobody in it
    has had a record of the partition yet. `of_partition`: what keeps readers of the partition from
    the message. `readers` None: there is no such group.
    """
    shared = next((each for each in told if each["group"] == group), None)
    if shared is None and len(told) >= MAX_GROUPS:
        return "unknown", [{"why": "left_out", "told": len(told)}]
    state = "not_yet" if shared is None else shared["state"]
    if state == "unknown":
        return state, [{"why": "state_unknown"}]
    if state == "acquired":
        assert shared is not None
        times = {name: shared[name] for name in ("since_ms", "lock_until_ms")}
        return state, [{"why": "lock", "member_id": shared["member"], **times}]
    if state not in ("not_yet", "available"):
        return state, []
    found: list[Document] = []
    if state == "available":
        assert shared is not None
        found.append({"why": "given_back", "delivery_count": shared["delivery_count"]})
    found += [
        each if each["why"] == "not_replicated" else {**each, "setting": ISOLATION}
        for each in of_partition
    ]
    if readers is None:
        found.append({"why": "no_group"})
    elif not readers.members:
        found.append({"why": "no_members", "is_simple": False})
    elif readers.state != "stable":
        found.append({"why": "rebalancing", "state": readers.state})
    elif not readers.with_partition:
        found.append({"why": "not_assigned", "members": readers.members})
    else:
        found.append({"why": "shared", "members": readers.with_partition})
    return state, found
