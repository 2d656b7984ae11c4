"""Where lists of very many partitions go on: more than an address can name, so it has a name for
them. They are in memory only; a list whose rest is gone begins again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import BadFormError

if TYPE_CHECKING:
    from ottla.messaging.record_scan import Span

PREFIX: Final = "kept-"
MAX_RESTS: Final = 16
"""Some MB with 10,000 partitions each; the oldest goes first."""

Rest: TypeAlias = "Mapping[TopicPartition, Span]"


class KeptRests:
    """Use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_name: dict[str, Rest] = {}

    def keep(self, rest: Rest) -> str:
        """A name for an address."""
        name = PREFIX + secrets.token_hex(8)
        with self._lock:
            while len(self._by_name) >= MAX_RESTS:
                del self._by_name[next(iter(self._by_name))]
            self._by_name[name] = rest
        return name

    def find(self, topic: str, name: str) -> Rest | None:
        """None if it is no such name. Raises BadFormError if its rest is gone, or of another
        topic.
        """
        if not name.startswith(PREFIX):
            return None
        with self._lock:
            rest = self._by_name.get(name)
        if rest is None or any(key.topic != topic for key in rest):
            raise BadFormError(
                "where this list goes on is no longer kept.", "Begin the list again."
            )
        return rest
