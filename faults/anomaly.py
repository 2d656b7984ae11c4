"""What a history may show that it must not, and which losses a policy allows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Policy(Enum):
    """What the producers asked for, and with it what may be lost.

    strict   acks=all, idempotent, clean elections: nothing.
    acks_1   acks=1, not idempotent: records that only a deposed leader had, and a retry
             may write twice.
    unclean  acks=all, idempotent, unclean elections: records that the new leader did not have.
    """

    strict = "strict"
    acks_1 = "acks-1"
    unclean = "unclean"


class Kind(Enum):
    """The names are those of Jepsen's Kafka workload where it has one."""

    lost_write = "lost write"
    lost_read = "lost read"
    phantom_read = "phantom read"
    aborted_read = "aborted read"
    two_values = "offset with two values"
    duplicate = "duplicate"
    reordered = "reordered"
    poll_skip = "poll skip"
    nonmonotonic_poll = "nonmonotonic poll"
    lost_commit = "lost commit"
    offset_gap = "offset gap"
    replicas_differ = "replicas differ"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`because` is why the policy allows it; None: it does not."""

    kind: Kind
    partition: int
    what: str
    because: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """All that was found. `is_good` where each is allowed."""

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
