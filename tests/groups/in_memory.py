"""What a shard has in memory, to compare before and after."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.shard import GroupShard


def all_in_memory(shard: GroupShard) -> Any:
    """A copy of everything, whether the log has it or not."""
    groups = {
        group_id: {name: copy(getattr(group, name)) for name in ClassicGroup.__slots__}
        | {"members": [replace(each) for each in group.members.values()]}
        for group_id, group in shard.groups.items()
    }
    return groups, dict(shard.offsets.all()), list(shard.pending.all())
