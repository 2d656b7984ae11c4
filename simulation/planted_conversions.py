"""Bugs of groups whose members change between the two group protocols, as patches like those in
`planted`. They are looked for in runs with `--conversions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ottla.groups import classic_members, conversion, shard
from simulation.pace import Pace
from simulation.planted import Patch, Sighting


def classic_members_get_their_targets(patch: Patch) -> None:
    """SyncGroup gives a classic member what others have not given up yet."""
    right = classic_members.sync

    def sync(group: Any, request: Any, topics: Any, step: Any) -> Any:
        right(group, request, topics, step)  # raises what it raises
        member = group.members[request.member_id]
        early = member._replace(
            assigned={
                topic: dict.fromkeys(numbers, member.epoch)
                for topic, numbers in group.target_of(member).items()
            }
        )
        group.members[request.member_id] = early
        try:
            return right(group, request, topics, step)
        finally:
            group.members[request.member_id] = member

    patch.setattr(classic_members, "sync", sync)


def upgraded_members_have_nothing(patch: Patch) -> None:
    """A group is converted without what its members have: it is given to others at once."""
    right = conversion._records_of

    def records_of(group_id: Any, epoch: Any, members: Any, topics: Any) -> Any:
        bare: list[Any] = [(member._replace(assigned={}), {}) for member, _ in members]
        return right(group_id, epoch, bare, topics)

    patch.setattr(conversion, "_records_of", records_of)


def downgrades_begin_numbering_again(patch: Patch) -> None:
    """The generation does not follow the epoch."""
    right = conversion.downgraded

    def begun(*arguments: Any) -> Any:
        made = right(*arguments)
        last: Any = made.records[-1]
        made.records[-1] = last._replace(value=last.value._replace(generation=1))
        return made

    patch.setattr(shard, "downgraded", begun)


def downgrades_leave_what_they_were(patch: Patch) -> None:
    """The records of the consumer group stay beside those of the classic one."""
    patch.setattr(conversion, "group_removal", lambda group: [])


def downgraded_groups_do_not_rebalance(patch: Patch) -> None:
    """What the last member of the consumer protocol had is read by nobody."""
    right = conversion.downgraded

    def at_rest(*arguments: Any) -> Any:
        return right(*arguments)._replace(must_rebalance=False)

    patch.setattr(shard, "downgraded", at_rest)


PLANTED_CONVERSIONS: Final[dict[Callable[[Patch], None], Sighting]] = {
    classic_members_get_their_targets: Sighting(87, pace=Pace.SWIFT),
    upgraded_members_have_nothing: Sighting(262, pace=Pace.SWIFT),
    downgrades_begin_numbering_again: Sighting(8, pace=Pace.SWIFT),
    downgrades_leave_what_they_were: Sighting(8, pace=Pace.SWIFT),
    downgraded_groups_do_not_rebalance: Sighting(17),
}
