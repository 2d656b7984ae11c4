"""A warning for rows that do not parse and that no sink keeps.

`to_delta` writes such rows to a table. Any other sink never sees them, so a listener of the
session warns, once for each query, when its progress counts some.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ottla.pipelines.running import QUERIES
from ottla.pipelines.source.source import REJECTED, SOURCES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("ottla.pipelines")

MAX_WARNED: Final = 10_000  # queries of a session that are remembered as warned of

_WATCHED: Final[WeakKeyDictionary[SparkSession, Any]] = WeakKeyDictionary()


class Watch:
    """Warns once for each run of a query that drops rejected rows."""

    def __init__(self) -> None:
        self._warned: dict[str, None] = {}

    def progressed(self, query_id: str, run_id: str, name: str | None, counts: Any) -> None:
        """Look at one progress; `counts` maps each metric to its row."""
        if query_id in QUERIES or run_id in self._warned:
            return
        for metric, row in counts.items():
            source = SOURCES.get(metric)
            if source is not None and source.can_reject and row[REJECTED]:
                self._warned[run_id] = None
                if len(self._warned) > MAX_WARNED:
                    del self._warned[next(iter(self._warned))]
                log.warning(
                    "the topic %s has rows that do not parse: %d in this batch. The query %s does "
                    "not keep them: write with to_delta(), stream them with rejected(), or call "
                    "topic() with rejects='keep'",
                    source.name,
                    row[REJECTED],
                    name or query_id,
                )
                return


def watch_rejects(spark: SparkSession) -> None:
    """Install the listener in a session, once."""
    if spark not in _WATCHED:
        from ottla.pipelines.source.listener import RejectsListener

        _WATCHED[spark] = RejectsListener(Watch().progressed)
        spark.streams.addListener(_WATCHED[spark])
