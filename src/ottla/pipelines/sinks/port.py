"""`Sink`: what a pipeline needs of a place to write rows to.

A sink creates its table before the first batch, writes one batch at a time, and returns where a
batch is. Each batch has an id; the sink alone decides how a batch that is written twice is stored
once. A `TableSink` also compares itself with the rows before the query starts, and has places
beside it for rows that are rejected or late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from ottla.pipelines.delivery import DeliveryGuarantee

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from ottla.pipelines.checkpoint.next_batch import Ends, Held
    from ottla.pipelines.sinks.keyed_table import KeyedTable

NO_VERSION: Final = -1
"""What a sink without versions returns for a batch that it wrote."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a query: `metadata` says in JSON which offsets it ends at; for a topic it is the
    digest of these.

    `once`: the batch may have been written before, and must not be stored twice. `forget_counted`
    is called before rows of which Spark has counted some are read again. `place` names the
    checkpoint in sentences. `promised`: the last batch of the query that the place has, as far as
    the run knows; None: nothing is known. `begins`: where the batch before this one ended, if the
    run knows that.
    """

    query_id: str
    number: int
    metadata: str
    once: bool = True
    forget_counted: Callable[[], None] = field(default=lambda: None, compare=False)
    place: str = ""
    promised: int | None = None
    begins: Ends | None = None


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
        """Write a batch and return the version that holds it, NO_VERSION where there are none.

        None: the batch was there already, and nothing was read or written.
        """

    def version_of(self, query_id: str, batch: int) -> int | None:
        """Return the version that holds a batch, None when none is found."""


class TableSink(Sink, Protocol):
    """A place for rows that knows what it holds: a Delta table, a folder of files, a database."""

    @property
    def short_name(self) -> str:
        """The last part of the name."""

    @property
    def kind(self) -> str:
        """What the place is, as in `Destination`."""

    @property
    def location(self) -> str:
        """Where the rows lie, as the checkpoint keeps it; empty where that is not known yet."""

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders in which the commits lie; none for a database."""

    @property
    def keyed(self) -> KeyedTable | None:
        """The columns of a table with keys, None for one that is appended to."""

    def forget(self) -> None:
        """Drop what is remembered of the place: it may have been deleted and made again."""

    def check(self) -> list[str]:
        """Compare the rows with the place; return what will change in it, a line for each.

        Raises PipelineError: the place holds something else, or the columns do not fit.
        """

    def table_id(self) -> str:
        """Return the id that the place got when it was made, empty where there is none."""

    def constrained(self, frame: DataFrame) -> DataFrame:
        """Mark the rows of a frame that the place refuses; see `constraints.fitting`."""

    def has_new_constraints(self) -> bool:
        """Tell whether the place has other constraints than when `constrained` marked the rows."""

    def held(self, query_id: str) -> Held:
        """Return what the place has of a query."""

    def metadata(self) -> Iterable[str]:
        """Return the metadata of the batches that the place keeps, the newest first."""

    def check_start(self, topic: str, *, continues: bool) -> None:
        """Check that a query with a new checkpoint may begin with a topic that no metadata names.

        `topic` is empty for a query that reads none; `continues`: with starting="table". Raises
        PipelineError.
        """

    def rows(self) -> DataFrame | None:
        """Return what the place holds, None where there is no such place."""

    def rejected(self, schema: StructType) -> TableSink:
        """Return the place of the rows that are rejected: `<target>_rejected`."""

    def rejected_hold(self, query_id: str, batch: int) -> bool:
        """Tell whether the rejected rows up to a batch of the query are written."""

    def late(self, schema: StructType) -> TableSink:
        """Return the place of the rows later than the watermark: `<target>_late`."""
