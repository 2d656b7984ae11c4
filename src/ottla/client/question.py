"""One request to a broker, in whichever version both sides know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.addresses import Address
from ottla.client.errors import UnsupportedError
from ottla.protocol.messages import Messages, messages_of
from ottla.protocol.versions import APIS

Versions = Mapping[int, tuple[int, int]]
"""The oldest and newest version of each request type that a broker supports."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request of type `key`, which `build` makes in the agreed version: the newest that the
    broker has, of `oldest` to `newest`. Fields that the version lacks are dropped.
    """

    key: int
    newest: int
    build: Callable[[Messages], Any]
    oldest: int = 0
    since: str | None = None
    """The first Apache Kafka that has `oldest`, for those who have an older one."""

    def request(self, versions: Versions, address: Address) -> Any:
        """The message of kio's for the broker at this address. Raises UnsupportedError."""
        low, high = versions.get(self.key, (0, -1))
        version = min(high, self.newest)
        if version < max(low, self.oldest):
            name = "".join(word.capitalize() for word in APIS[self.key].name.split("_"))
            missing = self.oldest if high < self.oldest else self.newest
            raise UnsupportedError(
                f"the broker at {address} does not support {name} in version {missing}.",
                None if self.since is None else f"Apache Kafka {self.since} and later do.",
            )
        return self.build(messages_of(self.key, version, "request"))
