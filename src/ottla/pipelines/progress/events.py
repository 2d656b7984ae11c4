"""Spark's progress events as values, read from their JSON. Pure.

The JSON is that of `StreamingQueryProgress.json` (Spark 4.0 to 4.2). `durationMs.addBatch` is
there only where a batch ran: Spark also sends progress when it merely looked for data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

Offsets = dict[str, dict[int, int]]  # topic -> partition -> next offset

_METRICS: Final = "ottla."
_REJECTED: Final = "rejected"
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Progress:
    """One progress of one query."""

    query_id: str
    query: str  # the name, or the id where there is none
    batch: int
    has_batch: bool
    began_ms: int  # since 1970
    took_ms: int
    rows: int
    offsets: Offsets  # where each partition's next batch begins
    rejected: int  # as counted by topic(), and so is the next
    unknown: int  # rows with fields that the schema lacks
    sink: str

    @property
    def rows_per_s(self) -> float | None:
        """Rows read a second while the batch ran."""
        return self.rows * 1_000 / self.took_ms if self.took_ms else None


def read_progress(text: str) -> Progress:
    """Return one progress from Spark's JSON."""
    document = json.loads(text)
    durations = document.get("durationMs") or {}
    metrics = document.get("observedMetrics") or {}
    sources = document.get("sources", [])
    counted = max(0, int(document.get("numInputRows", 0)))
    reads = _reads(counted, sources)
    return Progress(
        query_id=document["id"],
        query=document.get("name") or document["id"],
        batch=int(document["batchId"]),
        has_batch="addBatch" in durations,
        began_ms=_time_ms(document.get("timestamp")),
        took_ms=int(durations.get("triggerExecution", 0)),
        rows=counted // reads,
        offsets=offsets_of(sources),
        rejected=_counted(metrics, _REJECTED) // reads,
        unknown=_counted(metrics, _UNKNOWN) // reads,
        sink=str((document.get("sink") or {}).get("description", "")),
    )


def _reads(counted: int, sources: list[dict[str, Any]]) -> int:
    """Return how often the records of a batch were read: Spark counts them each time.

    A batch has at most one record for each of its offsets. Where many offsets have none, as in a
    compacted topic, this may be too few, and never too many.
    """
    begins: Offsets = {}
    for source in sources:
        if not _is_kafka(source):
            return 1  # its rows have no offsets to compare with
        begins |= by_number(source.get("startOffset") or {})
    offsets = sum(
        end - begins.get(topic, {}).get(partition, 0)
        for topic, partitions in offsets_of(sources).items()
        for partition, end in partitions.items()
    )
    return max(1, -(-counted // offsets)) if offsets > 0 else 1


def _is_kafka(source: dict[str, Any]) -> bool:
    is_named = str(source.get("description", "")).startswith("KafkaV2[")
    return is_named and isinstance(source.get("endOffset"), dict)


def offsets_of(sources: list[dict[str, Any]]) -> Offsets:
    """Return the next offset of each partition from the Kafka sources of a progress."""
    found: Offsets = {}
    for source in sources:
        if _is_kafka(source):
            found |= by_number(source["endOffset"])
    return found


def read_offsets(text: str) -> Offsets:
    """Read a file of a checkpoint's `offsets`: version, settings, then a line for each source."""
    found: Offsets = {}
    for line in text.splitlines()[2:]:
        found |= _read_kafka_offsets(line)
    return found


def read_initial_offsets(text: str) -> Offsets:
    """Read a file `sources/<index>/0` of a checkpoint: `v1` and one line of offsets.

    Spark's KafkaSourceInitialOffsetWriter puts a zero byte before the version.
    """
    lines = text.lstrip("\0").splitlines()
    return _read_kafka_offsets(lines[1]) if len(lines) > 1 and lines[0] == "v1" else {}


def by_number(offsets: dict[str, dict[str, int]]) -> Offsets:
    """Return Kafka offsets with their partitions as numbers; JSON has them as text."""
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in offsets.items()
    }


def _read_kafka_offsets(line: str) -> Offsets:
    document = json.loads(line) if line.startswith("{") else {}
    if document and all(isinstance(value, dict) for value in document.values()):
        return by_number(document)
    return {}


def _counted(metrics: dict[str, Any], what: str) -> int:
    counts = (
        row.get(what)
        for name, row in metrics.items()
        if name.startswith(_METRICS) and isinstance(row, dict)
    )
    return sum(count for count in counts if isinstance(count, int))


def _time_ms(text: str | None) -> int:
    if not text:
        return 0
    return int(datetime.fromisoformat(text).timestamp() * 1_000)
