"""`Sink`: what a pipeline needs of a place to write rows to.

A sink creates its table before the first batch, writes one batch at a time, and returns where a
batch is. Each batch has an id; the sink alone decides how a batch that is written twice is stored
once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ottla.pipelines.delivery import DeliveryGuarantee

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
    def deliveries(self) -> frozenset[DeliveryGuarantee]:
        """The promises that this sink can keep."""

    def make(self) -> None:
        """Create the place, empty, unless it exists. Raises PipelineError."""

    def write(self, frame: DataFrame, batch: Batch) -> int | None:
        """Write a batch and return the version that holds it.

        None: the batch was there already, and nothing was read or written.
        """

    def version_of(self, query_id: str, batch: int) -> int | None:
        """Return the version that holds a batch, None when none is found."""
