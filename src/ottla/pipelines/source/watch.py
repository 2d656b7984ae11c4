"""A warning for rows that do not parse and that no sink keeps, and for fields that are left out.

`to_delta` writes such rows to a table, and says which fields are left out. Any other sink never
sees them, so a listener of the session warns, once for each run of a query, when its progress
counts some.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from ottla.pipelines.running import QUERIES
from ottla.pipelines.source.source import REJECTED, SOURCES, UNKNOWN_NAMES, UNKNOWN_ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("ottla.pipelines")

MAX_WARNED: Final = 10_000  # queries of a session that are remembered as warned of

_WATCHED: Final[WeakKeyDictionary[SparkSession, Any]] = WeakKeyDictionary()


class Watch:
    """Warns once for each run of a query that drops rejected rows, and of unknown fields."""

    def __init__(self) -> None:
        self._warned: dict[tuple[str, str], None] = {}

    def progressed(self, query_id: str, run_id: str, name: str | None, counts: Any) -> None:
        """Look at one progress; `counts` maps each metric to its row."""
        if query_id in QUERIES:
            return
        for metric, row in counts.items():
            source = SOURCES.get(metric)
            if source is None:
                continue
            if source.can_reject and row[REJECTED] and self._is_first(run_id, REJECTED):
                log.warning(
                    "the topic %s has rows that do not parse: %d in this batch. The query %s does "
                    "not keep them: write with to_delta(), stream them with rejected(), or call "
                    "topic() with rejects='keep'",
                    source.name,
                    row[REJECTED],
                    name or query_id,
                )
            if UNKNOWN_ROWS not in row or not row[UNKNOWN_ROWS]:
                continue
            if source.unknown_fields == "drop" and self._is_first(run_id, UNKNOWN_ROWS):
                log.warning(
                    "%d values of %s in this batch have fields that the schema lacks, such as %s. "
                    "The query %s leaves them out: unknown_fields='keep' or 'reject' of topic() "
                    "keeps or rejects them",
                    row[UNKNOWN_ROWS],
                    source.name,
                    row[UNKNOWN_NAMES[0]],
                    name or query_id,
                )

    def _is_first(self, run_id: str, what: str) -> bool:
        is_first = (run_id, what) not in self._warned
        self._warned[run_id, what] = None
        if len(self._warned) > MAX_WARNED:
            del self._warned[next(iter(self._warned))]
        return is_first


def watch_rejects(spark: SparkSession) -> None:
    """Install the listener in a session, once."""
    if spark not in _WATCHED:
        from ottla.pipelines.source.watch_listener import RejectsListener

        _WATCHED[spark] = RejectsListener(Watch().progressed)
        spark.streams.addListener(_WATCHED[spark])
