"""`Sink`: what a place for rows has to do so that a pipeline can write to it.

A sink makes its place before the first batch, writes one batch at a time, and says where a batch
lies. It is told with each batch how it will be found again; the sink alone decides how it keeps
a batch that comes twice from being stored twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ottla.pipelines.delivery import Delivery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a query: `metadata` says in JSON which offsets it ends at.

    `once`: the batch may have been written before, and must not be stored twice.
    """

    query_id: str
    number: int
    metadata: str
    once: bool = True


class Sink(Protocol):
    """A place for rows."""

    @property
    def name(self) -> str:
        """The name that the user gave."""

    @property
    def shown(self) -> str:
        """What a person looks for: the table's name, or the whole path."""

    @property
    def deliveries(self) -> frozenset[Delivery]:
        """The promises that this sink can keep."""

    def make(self) -> None:
        """Make the place, empty, unless it is there. Raises PipelineError."""

    def write(self, frame: DataFrame, batch: Batch) -> int | None:
        """Write a batch and return the version that holds it.

        None: the batch was there already, and nothing was read or written.
        """

    def version_of(self, query_id: str, batch: int) -> int | None:
        """Return the version that holds a batch, None when none is found."""
