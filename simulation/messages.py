"""What hosts say to each other: the few fields of each request that decisions hang on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from ottla.controller.image import ClusterImage
from ottla.controller.in_sync_changes import ProposedIsr
from ottla.controller.plan import Plan
from ottla.protocol.errors import ErrorCode
from simulation.memory_log import NO_ID, Entry, Value


class Wanted(NamedTuple):
    """One partition of a follower's fetch."""

    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    topic_id: UUID


class Fetch(NamedTuple):
    """A follower's fetch (Fetch with replica_state)."""

    replica: int
    broker_epoch: int
    partitions: dict[str, Wanted]


class Fetched(NamedTuple):
    """One partition of its answer."""

    code: ErrorCode
    entries: tuple[Entry, ...] = ()
    high_watermark: int = -1
    diverging: tuple[int, int] | None = None


class Produce(NamedTuple):
    """One value."""

    partition: str
    topic_id: UUID
    value: Value
    acks: int


class Produced(NamedTuple):
    """Its place."""

    code: ErrorCode
    offset: int = -1
    leader_epoch: int = -1
    topic_id: UUID = NO_ID
    """Of the topic that the answering replica holds."""


class Read(NamedTuple):
    """A consumer's fetch; `from_follower` takes any replica (KIP-392)."""

    partition: str
    topic_id: UUID
    offset: int
    from_follower: bool = False


class ReadBack(NamedTuple):
    """What it gets."""

    code: ErrorCode
    entries: tuple[Entry, ...] = ()
    leader_epoch: int = -1


class Latest(NamedTuple):
    """ListOffsets, latest. It names its topic, and may be answered by the next of that name."""

    partition: str


class Poll(NamedTuple):
    """A broker asks the controller for deltas."""

    broker: int
    broker_epoch: int
    controller_epoch: int
    version: int
    want_shut_down: bool


class Told(NamedTuple):
    """MetadataDelta, as text; a snapshot where the broker's version is not known any more."""

    controller: int
    controller_epoch: int
    version: int
    is_snapshot: bool
    deltas: Any
    should_shut_down: bool


class Decide(NamedTuple):
    """A request that only the controller answers: its decider, with the request bound to it.

    The answer is the plan's reply, or None where there was no controller.
    """

    decide: Callable[[ClusterImage], Plan[Any]]
    what: str


class Propose(NamedTuple):
    """AlterPartition."""

    broker: int
    broker_epoch: int
    proposals: tuple[ProposedIsr, ...]


class Ends(NamedTuple):
    """A follower asks where its leader's log ends (ListOffsets)."""

    partition: str
    leader_epoch: int
