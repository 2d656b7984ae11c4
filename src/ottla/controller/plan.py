"""What a decider returns: what to write, what to tell, what to answer.

The order is the meaning: the writes are done first, all or none; only then is the news applied to
the image and told to the brokers; only then is the reply sent. A plan without writes has
no news; only brokers, which register by themselves, appear and vanish without any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from ottla.controller.image import News
from ottla.coordination.tree import Operation
from ottla.protocol.errors import ApiError, ErrorCode

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plan(Generic[T]):
    """`reply` belongs to the caller; see the module's text for the order."""

    reply: T
    writes: tuple[Operation, ...] = ()
    news: tuple[News, ...] = ()


class Outcome(NamedTuple):
    """An error code and its text, as most admin responses hold them for each resource."""

    code: ErrorCode = ErrorCode.none
    message: str | None = None

    @property
    def failed(self) -> bool:
        """True for anything but success."""
        return self.code is not ErrorCode.none


DONE = Outcome()


def refused(error: ApiError) -> Outcome:
    """The outcome that a refusal leads to."""
    return Outcome(error.code, error.message)


@dataclass(slots=True)
class Draft:
    """Writes and news as they come together, for several resources in one plan."""

    writes: list[Operation] = field(default_factory=list)
    news: list[News] = field(default_factory=list)

    def plan(self, reply: T, *, validate_only: bool = False) -> Plan[T]:
        """The finished plan; `validate_only` keeps the reply and drops what would be done."""
        if validate_only:
            return Plan(reply)
        return Plan(reply, tuple(self.writes), tuple(self.news))
