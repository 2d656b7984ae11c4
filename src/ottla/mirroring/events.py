"""What a mirror tells: sentences for people, and the same with its facts for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

CREATED: Final = "topic_created"
EXTENDED: Final = "partitions_added"
ALTERED: Final = "settings_changed"
REFUSED: Final = "topic_refused"
DELETED: Final = "topic_deleted"
RECREATED: Final = "topic_recreated"
REMOVED: Final = "records_removed"
CUT: Final = "log_cut"
LEFT_OUT: Final = "topic_left_out"
GROUP: Final = "group_refused"
ACLS: Final = "acls_added"
RESTORED: Final = "positions_restored"
WAITING: Final = "waiting"
PROGRESS: Final = "progress"
LOSSES: Final = frozenset({REFUSED, RECREATED, REMOVED, CUT, LEFT_OUT})
"""Those that mean that the target lacks something of the source."""


@dataclass(frozen=True, slots=True)
class Event:
    """`kind` is one of the names above; `text` a sentence; `facts` are values of JSON."""

    kind: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        """As a line of JSON."""
        return {"event": self.kind, **self.facts, "text": self.text}


Tell: TypeAlias = Callable[[Event], None]
"""May be called from two threads."""
