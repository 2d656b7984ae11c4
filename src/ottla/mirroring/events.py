"""What a mirror tells: sentences for people, and the same with its facts for programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ottla.client.topic_partition import TopicPartition

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


def removed(source: TopicPartition, first: int, last: int) -> Event:
    """The source has these offsets no more, and they were not mirrored."""
    text = (
        f"Records of {source} were removed before they were mirrored: offsets {first:,} to "
        f"{last:,}."
    )
    return Event(REMOVED, text, {**source._asdict(), "first": first, "last": last})


def cut(source: TopicPartition, mirrored: int, end: int | None = None) -> Event:
    """The source's log lacks what was mirrored up to before this offset. `end`: where it ends now;
    None: it has grown again, with other records.
    """
    what = (
        f"it has other records than those that were mirrored up to {mirrored - 1:,}."
        if end is None
        else f"it ends at {end:,}, and records up to {mirrored - 1:,} were mirrored."
    )
    text = (
        f"The log of {source} was cut at the source: {what} Topic {source.topic} is not mirrored "
        "on."
    )
    ended = {} if end is None else {"end": end}
    return Event(CUT, text, {**source._asdict(), **ended, "mirrored": mirrored})


def recreated(topic: str) -> Event:
    """The source has another topic of this name, or none."""
    text = (
        f"Topic {topic} was deleted at the source, and perhaps created again. It is not mirrored "
        "on."
    )
    return Event(RECREATED, text, {"topic": topic})
