"""Rows that do not parse, where the sink keeps none: counted and told, and not kept."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.rejects.read_again import find_part
from ottla.pipelines.rejects.told import somewhere
from ottla.pipelines.source.source import REJECTED, Source

if TYPE_CHECKING:
    from ottla.pipelines.checkpoint.identity import Offsets
    from ottla.pipelines.rejected_offsets import Told
    from ottla.pipelines.spark.jvm.execution import Execution
    from ottla.pipelines.target.port import Batch, Sink

log: Final = logging.getLogger("ottla.pipelines")


@dataclass
class LeftOutRows:
    """Takes the place of `Rejects`: `told` is what the commits of the last batch say.

    No row is read again, so no `reason` is known, and none is counted as kept.
    """

    sink: Sink
    sources: tuple[Source, ...]
    told: Told = field(default_factory=dict)
    reason: str | None = None
    count: int = 0
    _has_warned: bool = False

    def use(self, sink: Sink, sources: tuple[Source, ...]) -> None:
        """Take the rows of these sources from now on: the query was planned again."""
        self.sink, self.sources = sink, sources

    @property
    def may_reject(self) -> bool:
        """Whether any rows of this run can be rejected."""
        return any(source.can_reject for source in self.sources)

    def written_until(self, execution: Execution) -> Offsets:
        """Return nothing: no rejected rows are written."""
        return {}

    def write(
        self,
        execution: Execution,
        batch: Batch,
        refused: Any,
        *,
        skipped: bool,
        former: Any = None,
    ) -> None:
        """Note where the rejected rows of a batch lie, and warn of them once."""
        counted = execution.counted()
        found = (
            find_part(
                source,
                "",
                execution.range_of(source.name),
                counted.get(source.metric),
                reads_all=True,
            )
            for source in self.sources
            if source.can_reject
        )
        self.told = somewhere([part for part in found if part is not None], "")
        for source in () if self._has_warned else self.sources:
            number = counted.get(source.metric, {}).get(REJECTED)
            if source.can_reject and number:
                self._has_warned = True
                log.warning(
                    "the topic %s has rows that do not parse: %d in this batch. They are not "
                    "written to %s: stream them with rejected(), or call topic() with "
                    "rejects='keep'",
                    source.name,
                    number,
                    self.sink.shown,
                )

    def recover(self, look_up: Callable[[], Any]) -> None:
        """Do nothing: no rows wait."""

    def finish(self) -> None:
        """Do nothing: no rows wait."""
