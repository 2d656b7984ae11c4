"""How far members say the states of their tasks are: offsets in the changelogs (KIP-1071).

Each offset is the sum of those of all changelogs of the task. The assignor prefers who is furthest
for a standby task; an administrator sees them. They are in memory only. Kafka's MemberTaskOffsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from ottla.groups.streams.tasks import TaskId

MAX_TASK_OFFSETS: Final = 10_000
"""Of one member, of either kind. Kafka has no limit."""
TaskOffsets: TypeAlias = Mapping[TaskId, int]
NO_TASK_OFFSETS: Final[TaskOffsets] = {}


class MemberTaskOffsets(NamedTuple):
    """Of one member."""

    offsets: TaskOffsets = NO_TASK_OFFSETS
    end_offsets: TaskOffsets = NO_TASK_OFFSETS

    def updated(
        self, offsets: TaskOffsets | None, end_offsets: TaskOffsets | None
    ) -> MemberTaskOffsets:
        """With what it says now; None: as before."""
        return MemberTaskOffsets(
            self.offsets if offsets is None else offsets,
            self.end_offsets if end_offsets is None else end_offsets,
        )


NO_OFFSETS: Final = MemberTaskOffsets()
