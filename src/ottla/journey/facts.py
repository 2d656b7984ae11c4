"""What must be known to tell one message's journey; gathered by the broker, explained by
`explain`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.journey.lookup import Opening
from ottla.journey.place import PlacedRecord
from ottla.journey.retention import SegmentFacts
from ottla.journey.step import Step
from ottla.log.config import LogConfig
from ottla.records.header import BatchHeader


class Position(NamedTuple):
    """A group's committed offset now, and the metadata that came with it."""

    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where the offset lies, or would if compaction had not removed it (`record` None).

    `index_entry` is (offset, position) of the entry that leads there, None: from the segment's
    beginning. `damage` says why the batch could not be read.
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
    """All about one offset. `steps` and `opening` are None where no journey is kept."""

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
    place: Place | None
    superseded_by: int | None = None
    searched_to: int = 0
    replicas: tuple[int, ...] = ()
    """In assignment order; like the next three, as the cluster has it now."""
    isr: tuple[int, ...] = ()
    leader: int = -1
    leader_epoch: int = -1
