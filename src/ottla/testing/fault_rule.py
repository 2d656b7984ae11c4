"""A fault towards clients: which requests it meets, and what happens to them. Also the names by
which tests choose request types and errors, which are Kafka's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from ottla.protocol.versions import APIS, INTERNAL
from ottla.testing.errors import KitError, is_for_the_test
from ottla.wording.nearest import nearest

if TYPE_CHECKING:
    from ottla.protocol.errors import ErrorCode

__tracebackhide__ = is_for_the_test

KIT_CLIENT_ID: Final = "ottla-testing"
"""The kit's own clients. Faults meet them only by this client id, and they are not listed."""
API_NAMES: Final = {
    "".join(map(str.capitalize, api.name.split("_"))): key
    for key, api in APIS.items()
    if key not in INTERNAL
}
"""Kafka's names of the request types: {"Produce": 0, "Fetch": 1, "ListOffsets": 2, ...}."""
_NAMES: Final = {key: name for name, key in API_NAMES.items()}


class Effect(Enum):
    """What happens to the request. All but THROTTLE and DELAY keep its response from the client."""

    ERROR = "error"
    DELAY = "delay"
    DISCONNECT = "disconnect"
    NO_RESPONSE = "no response"
    THROTTLE = "throttle"


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One fault; `None` in a choice means any."""

    api_key: int
    effect: Effect
    is_after: bool = False
    """The broker carries the request out first: a produced record is in the log."""
    error_code: int = 0
    wait_ms: int = 0
    """The time of DELAY and THROTTLE."""
    times: int | None = None
    """How many requests it meets."""
    client_id: str | None = None
    topic: str | None = None

    def meets(self, api_key: int, client_id: str, topics: frozenset[str]) -> bool:
        """Whether this request is one of those."""
        if api_key != self.api_key or (self.topic is not None and self.topic not in topics):
            return False
        if self.client_id is None:
            return client_id != KIT_CLIENT_ID
        return client_id == self.client_id

    def to_json(self) -> dict[str, Any]:
        """For `from_json` in the broker's process."""
        return {**asdict(self), "effect": self.effect.value}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        return cls(**{**fields, "effect": Effect(fields["effect"])})


class Received(NamedTuple):
    """One request that a broker received from a client."""

    number: int
    """Counts from 1, in the order of arrival at this broker."""
    at_ms: int
    """The broker's time, in ms since 1970."""
    api: str
    """"Produce", "Fetch", ..."""
    version: int
    client_id: str
    topics: tuple[str, ...]
    fault: str | None
    """What the kit did to it: "error NOT_LEADER_OR_FOLLOWER"; None if nothing."""


def api_key(name: str) -> int:
    """The key of a request type, by Kafka's name. Raises KitError for unknown names."""
    return API_NAMES[_known(name, API_NAMES, "request type", "Produce")]


def api_name(key: int) -> str:
    """Kafka's name of a request type that clients send."""
    return _NAMES[key]


def error_code(name: str | ErrorCode) -> ErrorCode:
    """An error by Kafka's name, such as "NOT_LEADER_OR_FOLLOWER". Raises KitError."""
    from ottla.protocol.errors import ErrorCode

    if isinstance(name, ErrorCode):
        return name
    names = [each.name.upper() for each in ErrorCode]
    return ErrorCode[_known(name, names, "error", "NOT_LEADER_OR_FOLLOWER").lower()]


def _known(name: str, names: Iterable[str], what: str, example: str) -> str:
    """The name as Kafka writes it; upper and lower case do not matter."""
    by_folded = {each.casefold(): each for each in names}
    found = by_folded.get(name.casefold())
    if found is None:
        near = nearest(name, by_folded.values())
        hint = f"do you mean {near}?" if near else f"for example {example}"
        raise KitError(f"there is no {what} {name!r} in Kafka's protocol: {hint}")
    return found
