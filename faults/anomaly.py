"""The anomalies that a history can show, and the losses that a policy allows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Policy(Enum):
    """The settings of producers and topic, and the losses that follow from them.

    strict   acks=all, idempotent, clean elections: no losses.
    acks_1   acks=1, not idempotent: may lose records that only a deposed leader had; retries may
             write duplicates.
    unclean  acks=all, idempotent, unclean elections: may lose records that the new leader lacks.
    """

    strict = "strict"
    acks_1 = "acks-1"
    unclean = "unclean"


class Kind(Enum):
    """The names follow Jepsen's Kafka workload where it has one."""

    lost_write = "lost write"
    lost_read = "lost read"
    phantom_read = "phantom read"
    aborted_read = "aborted read"
    torn_transaction = "torn transaction"
    zombie_commit = "zombie commit"
    two_values = "offset with two values"
    duplicate = "duplicate"
    reordered = "reordered"
    poll_skip = "poll skip"
    nonmonotonic_poll = "nonmonotonic poll"
    lost_commit = "lost commit"
    two_owners = "two owners"
    stale_generation = "stale generation"
    offset_gap = "offset gap"
    replicas_differ = "replicas differ"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`because` is why the policy allows the anomaly; None if it does not."""

    kind: Kind
    partition: int
    what: str
    because: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """All anomalies found. `is_good` if the policy allows each of them."""

    anomalies: tuple[Anomaly, ...]

    @property
    def forbidden(self) -> tuple[Anomaly, ...]:
        return tuple(each for each in self.anomalies if each.because is None)

    @property
    def allowed(self) -> tuple[Anomaly, ...]:
        return tuple(each for each in self.anomalies if each.because is not None)

    @property
    def is_good(self) -> bool:
        return not self.forbidden
