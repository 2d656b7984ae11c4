"""Which fields of the values a run leaves out or keeps because the schema lacks them.

Spark counts the rows that have some, and names two of them. Where a name is new, the newest records
of the batch are looked at for the others, by the driver: to collect all names of all rows would
have no limit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import TopicState
from ottla.pipelines.kafka.records import RangeReader
from ottla.pipelines.source.newest import newest_ranges
from ottla.pipelines.source.source import UNKNOWN_NAMES, UNKNOWN_ROWS
from ottla.pipelines.source.unknown_names import unknown_names
from ottla.pipelines.unknown_fields import MAX_NAMES, UnknownFields

if TYPE_CHECKING:
    from ottla.pipelines.source.source import Source
    from ottla.pipelines.spark.jvm.execution import Execution

log: Final = logging.getLogger("ottla.pipelines")

MAX_RECORDS: Final = 1_000
MAX_LOOKS: Final = 10
"""So many batches of a run are looked at for more names."""

_DID: Final = {
    "drop": "They are left out; unknown_fields='keep' or 'reject' keeps or rejects them",
    "keep": "They are kept in the field _unknown",
}


@dataclass
class UnknownFieldsWatch:
    """`found`: the unknown fields of this run, by topic."""

    found: dict[str, UnknownFields] = field(default_factory=dict)
    _looks: int = 0

    def look(self, sources: Iterable[Source], execution: Execution) -> None:
        """Look at what was counted in the batch that was just read; warn of new names."""
        counted = execution.counted()
        for source in sources:
            row = counted.get(source.metric, {})
            if not row.get(UNKNOWN_ROWS):
                continue
            had = self.found.get(source.name)
            known = had.names if had else ()
            names = _named(str(row[one]) for one in UNKNOWN_NAMES if row.get(one))
            if set(names) <= set(known) or len(known) >= MAX_NAMES:
                continue
            names = list(dict.fromkeys([*known, *names, *self._sampled(source, execution)]))
            new = [name for name in names[:MAX_NAMES] if name not in known]
            self.found[source.name] = UnknownFields(source.unknown_fields, tuple(names[:MAX_NAMES]))
            log.warning(
                "%d values of %s in this batch have fields that the schema lacks: %s. %s",
                row[UNKNOWN_ROWS],
                source.name,
                ", ".join(new),
                _DID.get(source.unknown_fields, ""),
            )

    def _sampled(self, source: Source, execution: Execution) -> list[str]:
        """Return the unknown fields of the batch's newest records; none where they are not read."""
        span = execution.range_of(source.name)
        tree = source.known_fields
        if span is None or tree is None or self._looks >= MAX_LOOKS:
            return []
        self._looks += 1
        first, end = span
        held = {number: max(first[number], 0) for number in end}
        starts, ends = newest_ranges(TopicState(source.name, "", held, end), MAX_RECORDS)
        try:
            with RangeReader(source.kafka) as reader:
                records = reader.read(source.name, starts, ends) if ends else []
        except PipelineError as error:
            log.warning("The names of more fields of %s are not known: %s", source.name, error)
            return []
        skipped = source.framing_bytes
        return list(
            dict.fromkeys(
                name
                for record in records or ()
                if record.value is not None
                for name in unknown_names(record.value[skipped:], tree) or ()
            )
        )


def _named(texts: Iterable[str]) -> list[str]:
    """Return the names in what Spark observed; a text may name several."""
    return sorted({name for text in texts for name in text.split(", ")})
