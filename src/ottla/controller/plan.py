"""What a decider returns: the writes, the metadata deltas and the reply.

They take effect in this order: the writes first, all or none; then the deltas are applied to the
image and sent to the brokers; then the reply is sent. A plan without writes has no deltas, with
one exception: brokers register themselves, so they appear and vanish without a write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from ottla.controller.image import MetadataDelta
from ottla.coordination.tree import Operation
from ottla.protocol.errors import ApiError, ErrorCode

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plan(Generic[T]):
    """`reply` belongs to the caller; see the module's text for the order."""

    reply: T
    writes: tuple[Operation, ...] = ()
    deltas: tuple[MetadataDelta, ...] = ()


class Outcome(NamedTuple):
    """An error code and its message, as most admin responses have them for each resource."""

    code: ErrorCode = ErrorCode.none
    message: str | None = None

    @property
    def failed(self) -> bool:
        """True for anything but success."""
        return self.code is not ErrorCode.none


DONE = Outcome()


def refused(error: ApiError) -> Outcome:
    """The outcome for a refusal."""
    return Outcome(error.code, error.message)


@dataclass(slots=True)
class PlanBuilder:
    """Collects writes and deltas for several resources in one plan."""

    writes: list[Operation] = field(default_factory=list)
    deltas: list[MetadataDelta] = field(default_factory=list)

    def plan(self, reply: T, *, validate_only: bool = False) -> Plan[T]:
        """The finished plan; `validate_only` keeps the reply and drops the writes and deltas."""
        if validate_only:
            return Plan(reply)
        return Plan(reply, tuple(self.writes), tuple(self.deltas))
