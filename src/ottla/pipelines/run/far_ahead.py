"""Warns once of records whose `order_by` is far ahead of the clock, where they are not rejected."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ottla.pipelines.target.far_ahead import AHEAD, COUNTED_FROM, LATEST, METRIC

if TYPE_CHECKING:
    from ottla.pipelines.spark.jvm.execution import Execution
    from ottla.pipelines.target.port import Sink

log: Final = logging.getLogger("ottla.pipelines")


@dataclass
class FarAhead:
    """What one run has said."""

    has_warned: bool = False

    def look(self, execution: Execution, sink: Sink, batch: int) -> None:
        """Look at what was counted in the batch that has just been written."""
        if self.has_warned or sink.keyed is None:
            return
        counted = execution.counted().get(METRIC, {})
        if not counted.get(AHEAD):
            return
        self.has_warned = True
        log.warning(
            "batch %d has records whose column %s is more than %s ahead of the clock, up to %s: "
            "%d. No record of their keys is newer until then%s. To reject such records, write "
            "max_ahead='%s'",
            batch,
            sink.keyed.order_by,
            COUNTED_FROM,
            counted[LATEST],
            counted[AHEAD],
            ", and a truncation among them leaves out all records" * sink.keyed.has_truncations,
            COUNTED_FROM,
        )
