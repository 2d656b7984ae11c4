"""Which partition went from whom to whom, in one rebalance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias
from uuid import UUID

from ottla.wording.spans import spans

MAX_FOLLOWED: Final = 2_000
"""Partitions of one rebalance; of more only the number is told."""
MAX_MOVES: Final = 20
MAX_TEXT: Final = 200
"""Characters of a name or a reason: they may have 32,767 bytes."""

Topic: TypeAlias = UUID | str
"""A topic, by id or by name."""
NameOf: TypeAlias = Callable[[UUID], str | None]
"""The name of a topic, if it still exists."""


class Moves:
    """In a share group several members may have a partition: each gets or loses it by itself."""

    def __init__(self, *, is_shared: bool) -> None:
        self._is_shared = is_shared
        self._moved: dict[tuple[Topic, int, str], list[str | None]] = {}
        self._not_followed = 0
        self.is_known = True

    def lost(
        self,
        member_id: str,
        before: Mapping[Any, frozenset[int]],
        after: Mapping[Any, frozenset[int]],
    ) -> None:
        """What the member has no more."""
        for each in self._differing(member_id, before, after):
            move = self._moved.setdefault(each, [member_id, None])
            if move[1] == member_id:
                move[1] = None

    def gained(
        self,
        member_id: str,
        before: Mapping[Any, frozenset[int]],
        after: Mapping[Any, frozenset[int]],
    ) -> None:
        """What it has now."""
        for each in self._differing(member_id, after, before):
            self._moved.setdefault(each, [None, None])[1] = member_id

    @property
    def _room(self) -> int:
        return MAX_FOLLOWED - len(self._moved)

    def _differing(
        self,
        member_id: str,
        has: Mapping[Any, frozenset[int]],
        lacks: Mapping[Any, frozenset[int]],
    ) -> list[tuple[Topic, int, str]]:
        """What is in the first and not in the second, as far as there is room."""
        found: list[tuple[Topic, int, str]] = []
        part = member_id if self._is_shared else ""
        for topic, partitions in has.items():
            differ = partitions - lacks.get(topic, frozenset())
            new = [(topic, partition, part) for partition in differ]
            if len(found) + len(new) > self._room:
                self._not_followed += len(new)
            else:
                found += new
        return found

    @property
    def _all(self) -> dict[tuple[Topic, str | None, str | None], list[int]]:
        by_way: dict[tuple[Topic, str | None, str | None], list[int]] = {}
        for (topic, partition, _), (old, new) in self._moved.items():
            if old != new:
                by_way.setdefault((topic, old, new), []).append(partition)
        return by_way

    @property
    def count(self) -> int:
        """Of partitions that moved."""
        return sum(map(len, self._all.values())) + self._not_followed

    @property
    def is_complete(self) -> bool:
        """All that moved is known and listed."""
        return self.is_known and not self._not_followed and len(self._all) <= MAX_MOVES

    def documents(self, name_of: NameOf, clients: Mapping[str, str]) -> list[dict[str, Any]]:
        def member(member_id: str | None) -> dict[str, Any] | None:
            if member_id is None:
                return None
            return {"id": short(member_id), "client_id": short(clients.get(member_id, ""))}

        largest = sorted(self._all.items(), key=lambda each: -len(each[1]))[:MAX_MOVES]
        return [
            {
                "topic": topic if isinstance(topic, str) else name_of(topic) or str(topic),
                "partitions": short(spans(partitions)),
                "from": member(old),
                "to": member(new),
            }
            for (topic, old, new), partitions in largest
        ]


def short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "\N{HORIZONTAL ELLIPSIS}"
