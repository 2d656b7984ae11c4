"""Warns once of tombstones that are skipped where a table has keys: they would delete some rows."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.pipelines.source.source import TOMBSTONES

if TYPE_CHECKING:
    from ottla.pipelines.source.source import Source
    from ottla.pipelines.spark.jvm.execution import Execution
    from ottla.pipelines.target.port import Sink

log: Final = logging.getLogger("ottla.pipelines")


@dataclass
class SkippedTombstones:
    """What one run has said."""

    has_warned: bool = False

    def look(self, sources: Iterable[Source], execution: Execution, sink: Sink) -> None:
        """Look at what was counted in the batch that has just been written."""
        if sink.keyed is None or self.has_warned:
            return
        counted = execution.counted()
        for source in sources:
            count = counted.get(source.metric, {}).get(TOMBSTONES, 0)
            if source.tombstones == "skip" and count and not source.is_debezium:
                self.has_warned = True
                log.warning(
                    "%d tombstones of %s are skipped, and delete no row of %s: to delete, write "
                    "topic(..., tombstones='mark') and select the column tombstone",
                    count,
                    source.name,
                    sink.name,
                )
