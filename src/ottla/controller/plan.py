"""What a decider returns: the writes, the metadata deltas and the reply.

They take effect in this order: the writes first, all or none; then the deltas are applied to the
image and sent to the brokers; then the reply is sent. A plan without writes has no deltas, with
one exception: brokers register themselves, so they appear and vanish without a write.

A decision about many elements is made in steps, between which the event loop answers others. The
image stays as it is meanwhile: plans take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

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


Steps = Generator[None, None, Plan[T]]
"""A decision that is made in steps; what it returns is the plan."""

Charge = Callable[[int], None]
"""Takes the number of partitions that are created or deleted from a client's quota (KIP-599).
Raises THROTTLING_QUOTA_EXCEEDED."""


def free(partitions: int) -> None:
    """The charge of those without a quota."""


STEP_US: Final = 10_000
"""What a step takes, about."""


class Step:
    """Adds up what a step costs, in microseconds."""

    def __init__(self) -> None:
        self._left_us = STEP_US

    def is_full(self, cost_us: int) -> bool:
        """Before work of that cost: whether to pause first."""
        self._left_us -= cost_us
        if self._left_us >= 0:
            return False
        self._left_us = STEP_US
        return True


def decided(steps: Generator[None, None, T]) -> T:
    """What the steps return, made at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


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
