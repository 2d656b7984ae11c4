"""The queries that this process runs, by query id: `to_delta` adds one, `progress` reads it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from ottla.pipelines.destination import Destination
    from ottla.pipelines.rejected_offsets import Told
    from ottla.pipelines.spark.jvm.files import Files
    from ottla.pipelines.unknown_fields import Unknown


class Running(Protocol):
    """What others may ask about a running query."""

    @property
    def files(self) -> Files:
        """The files of the checkpoint, in which Spark keeps the query's offsets."""

    @property
    def table(self) -> str:
        """The table's name, or its whole path."""

    @property
    def destination(self) -> Destination | None:
        """What the journey says of where the rows go; None where that is not known."""

    @property
    def rejected_reason(self) -> str | None:
        """The most frequent reason of the rows that this run rejected; None: not known."""

    @property
    def rejected_rows(self) -> int:
        """The rows that this run rejected beside its target, also for a constraint."""

    @property
    def dropped(self) -> int:
        """The rows that this run dropped because they do not fulfil an expectation."""

    @property
    def truncated(self) -> int:
        """The rows that this run left out as older than a truncation of an earlier batch."""

    @property
    def reads_committed(self) -> frozenset[str]:
        """The topics of which it reads no records of aborted transactions."""

    @property
    def unknown_fields(self) -> Unknown:
        """The fields of the values that the schemas lack, as far as this run has seen some."""

    def rejected_in(self, batch: int) -> Told | None:
        """Return what a batch rejected, None where another run wrote it: then nothing is known."""

    def version_of(self, batch: int) -> int | None:
        """Return the version that holds a batch, None when no version does."""


MAX_ENDED: Final = 16
"""So many queries that have ended are known: Spark's last events of a query come after its end."""

QUERIES: Final[dict[str, Running]] = {}
_ENDED: Final[dict[str, None]] = {}  # the newest last
_LOCK: Final = threading.Lock()


def started(query_id: str, running: Running) -> None:
    """Let others know of a query that runs."""
    with _LOCK:
        _ENDED.pop(query_id, None)
        QUERIES[query_id] = running


def ended(running: Running) -> None:
    """Let a query go that has ended for good, when MAX_ENDED others have ended after it."""
    with _LOCK:
        for query_id in [one for one, known in QUERIES.items() if known is running]:
            _ENDED.pop(query_id, None)
            _ENDED[query_id] = None
        while len(_ENDED) > MAX_ENDED:
            oldest = next(iter(_ENDED))
            del _ENDED[oldest]
            QUERIES.pop(oldest, None)
