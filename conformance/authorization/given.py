"""What the requests of one situation are about, and what one of them is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple
from uuid import UUID

from ottla.protocol.messages import Messages


class Given(NamedTuple):
    """The names of one situation, and the ids of its topics."""

    prefix: str
    ids: dict[str, UUID]

    def name(self, word: str) -> str:
        return f"{self.prefix}-{word}"

    def topic_id(self, word: str) -> UUID:
        return self.ids[self.name(word)]


TOPICS: Final = ("t", "gone")
"""Topics that exist at first; the second one is deleted."""
NEW_TOPICS: Final = ("new", "auto", "changelog")
GROUPS: Final = (
    "g",
    "consumer",
    "share",
    "streams",
    *(f"classic{version}" for version in range(10)),
)
"""The first one has an offset, the others get members. The member of a classic group would have to
join again when another one does: each version of JoinGroup has its own group.
"""
TRANSACTIONS: Final = ("x",)
"""A transactional id that has been used."""

Build = Callable[[Messages, Given], Any]


class Kind(NamedTuple):
    """One way to use a request type."""

    key: int
    detail: str
    build: Build
    since: int = 0
    """The first version that can say it."""
