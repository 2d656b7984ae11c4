"""The facts about one message: gathered by `tracing`, explained by `explain`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.journey.key_elsewhere import KeyElsewhere
from ottla.journey.record_in_batch import RecordInBatch
from ottla.journey.retention_rules import SegmentFacts
from ottla.journey.shared import SharedFacts
from ottla.journey.table_rows import KeyHistory
from ottla.journey.transactions import TransactionFacts
from ottla.log.config import LogConfig
from ottla.records.header import BatchHeader
from ottla.timelines.step import Opening, Step


class Position(NamedTuple):
    """A group's current committed offset, and the metadata of the commit.

    `committed_ms` is the time of that commit by its coordinator's clock (None: not known),
    `coordinator` the broker that keeps it (-1: not known).
    """

    offset: int
    metadata: str
    leader_epoch: int = -1
    committed_ms: int | None = None
    coordinator: int = -1


class KnownGroups(NamedTuple):
    """Which groups the facts have: those of all coordinators, unless a field says otherwise.

    `unanswered`: brokers that coordinate groups and did not answer. `without_leader`: partitions of
    `__consumer_offsets` whose groups nobody coordinates now. `left_out`: groups above the limit.
    """

    unanswered: tuple[int, ...] = ()
    without_leader: int = 0
    left_out: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether no other group can have committed for the partition."""
        return not (self.unanswered or self.without_leader or self.left_out)


ALL_GROUPS: Final = KnownGroups()


@dataclass(frozen=True, slots=True)
class LogLocation:
    """Where the offset is stored, or would be if compaction had not removed it (`record` None).

    `index_entry` is (offset, position) of the nearest index entry; None: reads start at the
    segment's beginning. `damage` says why the batch cannot be read. Without `segment`, the batch
    was fetched from a broker, and what lies between here and `header` is not known.
    """

    segment: SegmentFacts | None
    folder: str
    log_file: str
    index_file: str
    index_entry: tuple[int, int] | None
    batch_position: int
    header: BatchHeader
    record: RecordInBatch | None
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All about one offset. `steps` and `opening` are None if the broker keeps no timelines."""

    topic: str
    partition: int
    offset: int
    now_ms: int
    broker_id: int
    partition_count: int
    replica_count: int
    start_offset: int
    end_offset: int
    high_watermark: int
    config: LogConfig
    segments: Sequence[SegmentFacts]
    steps: Sequence[Step] | None
    opening: Opening | None
    positions: Mapping[str, Position]
    location: LogLocation | None
    superseded_by: int | None = None
    """The offset of a later record with its key that counts for compaction."""
    searched_to: int = 0
    undecided: int | None = None
    """That of one whose transaction, or replication, may still fail."""
    groups: KnownGroups = ALL_GROUPS
    """Of which groups there are `positions`."""
    replicas: tuple[int, ...] = ()
    """In assignment order. This and the next four are the current state."""
    isr: tuple[int, ...] = ()
    leader: int = -1
    leader_epoch: int = -1
    partition_epoch: int = -1
    """-1: not known."""
    epoch_starts: Sequence[tuple[int, int]] = ()
    """The log's leader epochs that have records, each with its first offset."""
    fetched: Mapping[int, int] | None = None
    """From where each follower fetched last, as far as the leader knows; None: not asked."""
    transactions: TransactionFacts | None = None
    """None for an offset that is not stored."""
    near_keys: frozenset[bytes] = frozenset()
    """Keys of records of the same producer near it, if it has one and the topic more partitions."""
    key_history: KeyHistory | None = None
    """The messages of its key; None where no pipeline delivers it to a table by that key."""
    key_steps: Sequence[Step] | None = None
    """The steps, with those of segments before its own that have such messages; None: `steps`."""
    key_elsewhere: KeyElsewhere | None = None
    """Messages of its key in other partitions; None where it is not asked."""
    shared: Sequence[SharedFacts] = ()
    """Of each share group of the partition."""
