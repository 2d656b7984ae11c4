"""The queries that this process runs, by query id: `to_delta` adds one, `progress` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from ottla.pipelines.destination import Destination
    from ottla.pipelines.rejected_offsets import Told
    from ottla.pipelines.spark.jvm.files import Files
    from ottla.pipelines.unknown_fields import Unknown


class Running(Protocol):
    """What others may ask about a running query."""

    @property
    def checkpoint(self) -> Files:
        """The folder where Spark keeps the query's place."""

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
    def reads_committed(self) -> frozenset[str]:
        """The topics of which it reads no records of aborted transactions."""

    @property
    def unknown_fields(self) -> Unknown:
        """The fields of the values that the schemas lack, as far as this run has seen some."""

    def rejected_in(self, batch: int) -> Told | None:
        """Return what a batch rejected, None where another run wrote it: then nothing is known."""

    def version_of(self, batch: int) -> int | None:
        """Return the version that holds a batch, None when no version does."""


QUERIES: Final[dict[str, Running]] = {}
