"""The facts about one message: gathered by `tracing`, explained by `explain`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.journey.key_elsewhere import KeyElsewhere
from ottla.journey.record_in_batch import PlacedRecord
from ottla.journey.retention_rules import SegmentFacts
from ottla.journey.table_rows import KeyHistory
from ottla.journey.transactions import TransactionFacts
from ottla.log.config import LogConfig
from ottla.records.header import BatchHeader
from ottla.timelines.step import Opening, Step


class Position(NamedTuple):
    """A group's current committed offset, and the metadata of the commit."""

    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class LogLocation:
    """Where the offset is stored, or would be if compaction had not removed it (`record` None).

    `index_entry` is (offset, position) of the nearest index entry; None: reads start at the
    segment's beginning. `damage` says why the batch cannot be read.
    """

    segment: SegmentFacts
    folder: str
    log_file: str
    index_file: str
    index_entry: tuple[int, int] | None
    batch_position: int
    header: BatchHeader
    record: PlacedRecord | None
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
    searched_to: int = 0
    replicas: tuple[int, ...] = ()
    """In assignment order. This and the next three are the current state."""
    isr: tuple[int, ...] = ()
    leader: int = -1
    leader_epoch: int = -1
    transactions: TransactionFacts | None = None
    """None for an offset that is not stored."""
    key_history: KeyHistory | None = None
    """The messages of its key; None where no pipeline delivers it to a table by that key."""
    key_steps: Sequence[Step] | None = None
    """The steps, with those of segments before its own that have such messages; None: `steps`."""
    key_elsewhere: KeyElsewhere | None = None
    """Messages of its key in other partitions; None where it is not asked."""
