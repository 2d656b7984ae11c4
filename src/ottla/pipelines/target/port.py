"""`Sink`: what a pipeline needs of a target to write rows to.

A sink compares itself with the rows before the query starts, is made before the first batch,
writes one batch at a time, and returns where a batch is. Each batch has an id; the sink alone
decides how a batch that is written twice is stored once. What a sink can do beside that, its
`Capabilities` say: a pipeline asks for these, and never for the kind of a sink.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from ottla.pipelines.checkpoint.changes import wrong_table
from ottla.pipelines.destination import Destination
from ottla.pipelines.failures.known import Known

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from ottla.pipelines.checkpoint.identity import Identity
    from ottla.pipelines.checkpoint.next_batch import Ends, Held
    from ottla.pipelines.delivery import DeliveryGuarantee
    from ottla.pipelines.target.constraints import Constraint
    from ottla.pipelines.target.keyed_table import KeyedTable
    from ottla.pipelines.target.truncation import Truncation

NO_VERSION: Final = -1
"""What a sink without versions returns for a batch that it wrote."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a query: `metadata` says in JSON which offsets it ends at.

    `once`: the batch may have been written before, and must not be stored twice. `forget_counted`
    is called before rows of which Spark has counted some are read again. `checkpoint` names the
    checkpoint in sentences. `promised`: the last batch of the query that the target has, as far as
    the run knows; None: nothing is known. `begins`: where the batch before this one ended, if the
    run knows that. `is_replay`: it is no batch of the pipeline's query, which goes on as if it were
    not there. `truncation`: the table is truncated before the rows of the batch, which are all
    later. `truncated`: so many records of the batch an earlier truncation leaves out.
    """

    query_id: str
    number: int
    metadata: str
    once: bool = True
    forget_counted: Callable[[], None] = field(default=lambda: None, compare=False)
    checkpoint: str = ""
    promised: int | None = None
    begins: Ends | None = None
    is_replay: bool = False
    truncation: Truncation | None = None
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a sink can do.

    `keeps_rejects`: it has targets beside it for rows that are rejected or late; elsewhere these
    are counted alone. `is_shared`: others write to it as well, as to a topic, so that a new query
    begins as if it were empty. `in_parts`: a batch is several commits, and a kill may leave some of
    them.
    """

    keeps_rejects: bool = True
    is_shared: bool = False
    in_parts: bool = False


class Sink(ABC):
    """The target of rows: a Delta table, a folder of files, a table of a database, a topic.

    `keyed`: the columns of a table with keys, None for a target that is appended to. `failures`:
    those that this kind of target alone has. `place_is`: as in `Destination`.
    """

    capabilities = Capabilities()
    place_is: ClassVar[str] = "table"
    failures: ClassVar[tuple[Known, ...]] = ()
    keyed: KeyedTable | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the user gave."""

    @property
    @abstractmethod
    def short_name(self) -> str:
        """The last part of the name."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """What a person looks for: the table's name, or the whole path."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the target is, as in `Destination`."""

    @property
    @abstractmethod
    def called(self) -> str:
        """What people call such a target."""

    @property
    @abstractmethod
    def location(self) -> str:
        """Where the rows lie, as the checkpoint keeps it; empty where that is not known yet."""

    @property
    def destination(self) -> Destination:
        """What the journey says of a target that is appended to."""
        return Destination(self.kind, self.shown, called=self.called, place_is=self.place_is)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders in which the commits lie."""
        return ()

    @property
    def servers(self) -> tuple[str, ...]:
        """The Kafka brokers that take the rows."""
        return ()

    @property
    def is_adaptive(self) -> bool | None:
        """Whether Spark is to plan the write of a batch adaptively; None: as in the stream.

        A sink whose batches have parts makes Spark's partitions itself, and they stay as they are.
        """
        return None if self.capabilities.in_parts else True

    def forget(self) -> None:  # noqa: B027 - most remember nothing
        """Drop what is remembered of the target: it may have been deleted and made again."""

    @abstractmethod
    def check(self) -> list[str]:
        """Compare the rows with the target; return what will change in it, a line for each.

        Raises PipelineError: the target holds something else, or the columns do not fit.
        """

    @abstractmethod
    def make(self) -> None:
        """Create the target, empty, unless it exists. Raises PipelineError."""

    @abstractmethod
    def table_id(self) -> str:
        """Return the id that the target got when it was made, empty where there is none."""

    def wrong_owner(self, identity: Identity | None, checkpoint: str) -> str | None:
        """Return why the checkpoint of this record cannot write here, None when it can."""
        return wrong_table(identity, checkpoint, self.name, self.table_id(), self.location)

    def check_start(self, topic: str, *, continues: bool) -> None:  # noqa: B027
        """Check that a query with a new checkpoint may begin with a topic that no metadata names.

        `topic` is empty for a query that reads none; `continues`: with starting="table". Raises
        PipelineError.
        """

    def forgets(self) -> str:
        """Return why the target may hold topics that no commit names, as a part of a sentence.

        Empty where it knows all the commits of queries.
        """
        return ""

    def newest_commit(self) -> str | None:
        """Return the id of the newest commit, empty where there is none yet.

        None: the target forgets none, so none needs to be noted.
        """
        return None

    def knows_since(self, commit: str) -> bool:
        """Tell whether all commits after this one are known; see `newest_commit`."""
        return True

    def check_repeat(  # noqa: B027
        self, delivery: DeliveryGuarantee, begun_ms: int, checkpoint: str
    ) -> None:
        """Check that a batch which was cut off can be repeated; it began then, in ms since 1970.

        Raises PipelineError.
        """

    def check_running(self) -> None:  # noqa: B027
        """Check before a batch that the target is still there. Raises PipelineError."""

    def why_silent(self) -> str | None:
        """Return why the target cannot be reached now, None where it can or nothing is known."""
        return None

    def constrained(self, frame: DataFrame) -> DataFrame:
        """Mark the rows of a frame that the target refuses; see `constraints.fitting`."""
        return frame

    def changing(self) -> tuple[Constraint, ...]:
        """Return of what `constrained` asks that which the target would not refuse, but change."""
        return ()

    def has_new_constraints(self) -> bool:
        """Tell whether the target has other constraints than when `constrained` marked the rows."""
        return False

    @abstractmethod
    def write(self, frame: DataFrame, batch: Batch) -> int | None:
        """Write a batch and return the version that holds it, NO_VERSION where there are none.

        None: the batch was there already, and nothing was read or written.
        """

    def version_of(self, query_id: str, batch: int) -> int | None:
        """Return the version that holds a batch, None when none is found."""
        return None

    @abstractmethod
    def held(self, query_id: str) -> Held:
        """Return what the target has of a query."""

    def metadata(self) -> Iterable[str]:
        """Return the metadata of the batches that the target keeps, the newest first."""
        return ()

    def rows(self) -> DataFrame | None:
        """Return what the target holds, None where there is none, or it cannot be read."""
        return None

    def rejected(self, schema: StructType) -> Sink:
        """Return the target of the rows that are rejected: `<target>_rejected`."""
        raise NotImplementedError(f"{self.name} keeps no rejected rows")

    def rejected_hold(self, query_id: str, batch: int) -> bool:
        """Tell whether the rejected rows up to a batch of the query are written."""
        raise NotImplementedError(f"{self.name} keeps no rejected rows")

    def rejected_metadata(self) -> Iterable[str]:
        """Return the metadata of the batches whose rejected rows are kept, the newest first."""
        from pyspark.sql.types import StructType

        if not self.capabilities.keeps_rejects:
            return ()
        return self.rejected(StructType()).metadata()

    def late(self, schema: StructType) -> Sink:
        """Return the target of the rows older than the watermark: `<target>_late`."""
        raise NotImplementedError(f"{self.name} keeps no late rows")

    def close(self) -> None:  # noqa: B027
        """Let go of what a running query holds open."""
