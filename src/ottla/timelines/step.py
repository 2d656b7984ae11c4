"""One step of a timeline: when a number that only grows went from one value to another.

Everything that happens to a message on a partition is such a number: log end offset, high
watermark, log start offset, a group's committed offset, a pipeline's delivered offset, a follower's
fetch offset. A step says: at `since_ms` the number went from `before` to `first`; by `until_ms` it
had reached `last`. So for an offset N with `before <= N < first` the time is exact, and for `first
<= N < last` it is between `since_ms` and `until_ms`. If nothing was coalesced into the step, `first
== last` and both times are equal.
"""

from enum import IntEnum
from typing import Final, NamedTuple

MAX_CLIENTS_IN_STEP: Final = 8
OTHERS: Final = (-1, "")
"""Represents a step's clients above the limit, whose names are not kept."""
COPIED: Final = (-2, "")
"""In place of a client: a follower copied the batches from its leader."""


class Kind(IntEnum):
    """Which number a step is about. The values are written to files: never reuse one."""

    END = 1
    """Log end offset; the name is the clients whose batches were appended."""
    HIGH = 2
    """High watermark; no name."""
    END_AND_HIGH = 3
    """Both at once, as on a broker that has no followers to wait for."""
    START = 4
    """Log start offset; the name is the reason, "" for a follower, which does not know it."""
    OPENED = 5
    """The broker opened the partition at `since_ms` and found its log end at `last`. Written once
    a start.
    """
    GROUP = 6
    """A group's committed offset; the name is the group."""
    SET_BACK = 7
    """A group's committed offset went back from `last` to `first`; the name is the group."""
    DELIVERED = 8
    """A pipeline's delivered offset; the name is (group, query, table), `versions` tells where it
    went.
    """
    REPLICA = 9
    """A follower's fetch offset, as its leader saw it; the name is the broker's number."""
    IN_SYNC = 10
    """Leader, epoch or in-sync set changed while the log ended at `last`; the name is a `Role`.
    `unknown_before`: found so at a start, it may have begun earlier.
    """
    CUT = 11
    """The log was cut from `last` back to `before`, to follow the leader of this `Role`. What lay
    before `first` had been committed, as far as this broker knew.
    """
    DIVERGED = 12
    """A follower held other records from `before` to `last` than its leader; the name is its
    number.
    """
    REJECTED = 13
    """A pipeline rejected all offsets from `before` to `first` (exclusive), and some of those from
    `first` to `last`. It is said at `since_ms`; the offsets may lie anywhere. The name is a
    `Rejection`, or a `Pipeline` alone: it rejected none of the offsets, whatever was said before.
    What is said last counts.
    """
    FORGOTTEN = 14
    """A group's committed offset, which was `last`, was removed; the name is (group, reason)."""
    CLOCK = 15
    """The broker's clock was set back to `since_ms`, from `until_ms` or later."""


class By(IntEnum):
    """Who moved a group's committed offset. The values are written to files."""

    UNKNOWN = 0
    """Recorded by an earlier version."""
    MEMBER = 1
    """A member of the group, or a transaction."""
    SIMPLE = 2
    """No member, and the group has never had one: a consumer that assigns partitions to itself, or
    a tool that resets offsets.
    """
    OUTSIDE = 3
    """No member, of a group that has or had members: most likely a tool that resets offsets."""


class Before(NamedTuple):
    """What a group had committed before a commit; offset -1: nothing."""

    offset: int
    metadata: str


Clients = tuple[tuple[int, str], ...]
"""Pairs of producer id (-1: none) and client id, or `COPIED`."""
Pipeline = tuple[str, str, str]
"""Group, query, and where the rows go: `Destination.text` ("": unknown)."""
Rejection = tuple[str, str, str, str, str]
"""Group, query, where the rows go, where the rejected rows are kept, reason ("" for unknown)."""
Role = tuple[int, int, tuple[int, ...], int]
"""Leader (-1: none), leader epoch, in-sync set, and partition epoch (-1: unknown)."""
NO_ROLE: Final[Role] = (-1, -1, (), -1)
Removal = tuple[str, str]
"""Group, and why its offset was removed: "OffsetDelete", "DeleteGroups" or
"offsets.retention.minutes".
"""
Name = Clients | Pipeline | Rejection | Role | Removal | str | None


class Versions(NamedTuple):
    """Micro-batches and versions of the destination (-1: it has none) which a delivery step covers,
    first and last.
    """

    first_batch: int
    last_batch: int
    first_version: int
    last_version: int


class Step(NamedTuple):
    """See the top of this file. `unknown_before`: nothing is known about the number before this
    step. `has_rejects`: the delivery rejected some of its offsets, which steps of kind REJECTED
    tell; where these are lost, all of its offsets are in doubt. `by`: who committed, of a group.
    `is_first`: the group had no offset before this step, so nothing is lost. `broker`: the one that
    recorded it, by its clock (-1: this one); not in files. `reads_committed`: the delivery is
    without records of aborted transactions (false: not known). `is_plain`: of the log end, no batch
    was of a transaction (false: not known). `checkpoint`: the number of the pipeline's checkpoint
    (0: not known); batches of different ones have no order.
    """

    kind: Kind
    name: Name
    since_ms: int
    until_ms: int
    before: int
    first: int
    last: int
    unknown_before: bool = False
    versions: Versions | None = None
    has_rejects: bool = False
    by: By = By.UNKNOWN
    is_first: bool = False
    broker: int = -1
    reads_committed: bool = False
    is_plain: bool = False
    checkpoint: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether one time holds for every offset of the step."""
        return self.since_ms == self.until_ms


class Opening(NamedTuple):
    """What the broker found when it last opened the partition: it limits what no step covers."""

    opened_ms: int
    end_offset: int
    high_watermark: int


def joined_clients(one: Clients, other: Clients) -> Clients:
    """Both sets of clients, at most `MAX_CLIENTS_IN_STEP` (then with `OTHERS`)."""
    union = dict.fromkeys((*one, *other))
    if len(union) <= MAX_CLIENTS_IN_STEP:
        return tuple(union)
    union.pop(OTHERS, None)
    return (*tuple(union)[: MAX_CLIENTS_IN_STEP - 1], OTHERS)


def joined_versions(one: Versions | None, other: Versions) -> Versions:
    """The range that covers both."""
    if one is None:
        return other
    return Versions(
        min(one.first_batch, other.first_batch),
        max(one.last_batch, other.last_batch),
        min(one.first_version, other.first_version),
        max(one.last_version, other.last_version),
    )
