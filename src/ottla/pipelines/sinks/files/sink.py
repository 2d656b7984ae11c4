"""`FilesSink`: batches into a folder of Parquet or JSON files, by Spark's own file sink.

Spark's `FileStreamSink` writes the files of a batch, then lists them in `_spark_metadata`, in one
file that appears as a whole. Spark reads only files that are listed there, so for it a batch is
there once and as a whole. A killed batch leaves files that no list names, and its repetition writes
others beside them: a reader that lists the folder itself finds both.

`file_batches` says which number a batch has in these lists.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint.next_batch import Held, Planned, Refuse, decide, digest
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.locations import shown_location
from ottla.pipelines.sinks.files.batches import STATE, FolderState, number_of
from ottla.pipelines.sinks.files.jvm import SparkFileSink
from ottla.pipelines.spark.jvm.files import Files
from ottla.pipelines.target.commit_metadata import read_metadata
from ottla.pipelines.target.constraints import mark, partition_constraints
from ottla.pipelines.target.port import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

    from ottla.pipelines.target.constraints import Constraint
    from ottla.pipelines.target.port import Batch

CALLED: Final = {"parquet": "Parquet files", "json": "JSON files"}
FORMATS: Final = tuple(CALLED)
LISTS: Final = "_spark_metadata"

_NO_PARTITION: Final = ("struct", "array", "map", "variant", "binary", "void")


@dataclass
class FilesSink(Sink):
    """A folder of files as the target of a pipeline's rows."""

    place_is = "folder"
    spark: SparkSession
    target: str
    schema: StructType
    format: str = FORMATS[0]
    partition_by: tuple[str, ...] = ()
    schema_changes: str = "refuse"  # or "add"
    _query: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        self._files = Files(self.spark, self.target)

    @property
    def name(self) -> str:
        """The folder, as the user gave it."""
        return self.target

    @property
    def short_name(self) -> str:
        """The last part of the path."""
        return self.name.rstrip("/").rpartition("/")[2]

    @property
    def kind(self) -> str:
        """The format of the files."""
        return self.format

    @property
    def called(self) -> str:
        """The format of the files, as people say it."""
        return CALLED[self.format]

    @property
    def location(self) -> str:
        """The folder with its scheme."""
        return self._files.location

    @property
    def shown(self) -> str:
        """The whole path."""
        return shown_location(self.location)

    @property
    def folders(self) -> tuple[str, ...]:
        """The folder."""
        return (self.location,)

    def rows(self) -> DataFrame | None:
        """Return what Spark's lists of files name, None where there is no such folder."""
        from pyspark.sql.types import StructType

        state = self._state()
        if state is None:
            return None
        schema = StructType.fromJson(state.schema)
        return self.spark.read.schema(schema).format(self.format).load(self.location)

    def rejected(self, schema: StructType) -> FilesSink:
        """Return the sink of the rows that are rejected: the folder `<target>_rejected`."""
        return self._beside("_rejected", schema)

    def late(self, schema: StructType) -> FilesSink:
        """Return the sink of the rows older than the watermark: the folder `<target>_late`."""
        return self._beside("_late", schema)

    def _beside(self, suffix: str, schema: StructType) -> FilesSink:
        name = self.name.rstrip("/") + suffix
        return FilesSink(self.spark, name, schema, self.format, schema_changes="add")

    def rejected_hold(self, query_id: str, batch: int) -> bool:
        """Tell whether the rejected rows up to a batch of the query are written."""
        last = self._beside("_rejected", self.schema).last_batch(query_id)
        return last is not None and last >= batch

    def check(self) -> list[str]:
        """Compare the frame with the folder; return what will change in it, a line for each.

        Raises PipelineError: the target is a file, or holds something else; the columns do not fit.
        """
        self._check_columns()
        if self._files.is_file():
            raise PipelineError(f"{self.name} is a file: give the name of a folder")
        state = self._state()
        if state is None:
            if any(not name.startswith(".") for name in self._files.names()):
                raise PipelineError(
                    f"{self.name} contains files that to_files did not write: choose another target"
                )
            return []
        if state.format != self.format:
            raise PipelineError(
                f"The folder {self.name} has {state.format} files: write format={state.format!r}, "
                "or choose another target"
            )
        self.partition_by = self.partition_by or state.partition_by
        if state.partition_by != self.partition_by:
            has = ", ".join(state.partition_by) or "no column"
            raise PipelineError(
                f"The folder {self.name} is partitioned by {has}, not by "
                f"{', '.join(self.partition_by)}: leave out partition_by, or choose another target"
            )
        return [
            f"The folder {self.name} gets the column {name} ({kind})"
            for name, kind in self._added(state)
        ]

    def _check_columns(self) -> None:
        names = [name.lower() for name in self.schema.names]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise PipelineError(f"The frame has two columns {twice}: give one another name with AS")
        kinds = {one.name: one.dataType for one in self.schema.fields}
        for name in self.partition_by:
            if name not in kinds:
                raise PipelineError(
                    f"partition_by={name!r} is not a column of the frame: it has "
                    f"{', '.join(self.schema.names)}"
                )
            if kinds[name].typeName() in _NO_PARTITION:
                raise PipelineError(
                    f"partition_by={name!r} is {kinds[name].simpleString()}, which cannot be the "
                    "name of a folder: choose another column"
                )
        if len(self.partition_by) == len(kinds):
            raise PipelineError(
                "partition_by has all columns of the frame, and no column is left for the files: "
                "leave one out"
            )
        for name, kind in kinds.items():
            if name not in self.partition_by and not self._can_hold(kind):
                raise PipelineError(
                    f"The column {name} is {kind.simpleString()}, which {self.format} files cannot "
                    "hold: cast it in the query, to STRING for example, or leave it out"
                )

    def _can_hold(self, kind: DataType) -> bool:
        return SparkFileSink(self.spark, self.format).can_hold(kind)

    def _added(self, state: FolderState) -> list[tuple[str, str]]:
        """Return the columns that the folder does not have: (name, type). Raises PipelineError."""
        from pyspark.sql.types import StructType

        known = {one.name.lower(): one.dataType for one in StructType.fromJson(state.schema).fields}
        added = []
        for one in self.schema.fields:
            kind, there = one.dataType.simpleString(), known.get(one.name.lower())
            if there is None:
                added.append((one.name, kind))
            elif there.simpleString() != kind:
                raise PipelineError(
                    f"The column {one.name} is {kind} in the rows and {there.simpleString()} in "
                    f"the folder {self.name}: cast it in the query, or write to a new folder"
                )
        if added and self.schema_changes == "refuse":
            name, kind = added[0]
            raise PipelineError(
                f"The frame has the column {name} ({kind}), which the folder {self.name} does not "
                "have: select the folder's columns, or write schema_changes='add'"
            )
        return added

    def make(self) -> None:
        """Create the folder with its `_ottla_folder`, or note new columns in it."""
        state = self._state()
        if state is None:
            schema = self.schema.jsonValue()
            state = FolderState(uuid.uuid4().hex, self.format, self.partition_by, schema)
        elif added := {name for name, _ in self._added(state)}:
            new = [one.jsonValue() for one in self.schema.fields if one.name in added]
            schema = state.schema | {"fields": [*state.schema["fields"], *new]}
            state = replace(state, schema=schema)
        else:
            return
        STATE.write(self._files, state)

    def constrained(self, frame: DataFrame) -> DataFrame:
        """Mark the rows of a frame whose texts would become null; see `constraints.fitting`."""
        found = self.changing()
        return mark(frame, frame.schema, found) if found else frame

    def changing(self) -> tuple[Constraint, ...]:
        """Return what the texts must fulfil that would become null."""
        return partition_constraints(self.schema, self.partition_by)

    def table_id(self) -> str:
        """Return the id that the folder got when it was made, empty where there is none."""
        state = self._state()
        return state.id if state else ""

    def last_batch(self, query_id: str) -> int | None:
        """Return the last batch of a query that the folder is known to have, None for none."""
        state = self._state()
        return state.last_batch(query_id, self._latest()) if state else None

    def held(self, query_id: str) -> Held:
        """Return what the folder has of a query, by Spark's lists and the digests beside them.

        Files that somebody deletes are not known.
        """
        state = self._state()
        if state is not None and state.replay is not None and state.replay[0] == query_id:
            return self._held(None, 0 if state.replay[1] <= self._latest() else None)
        last = state.last_batch(query_id, self._latest()) if state else None
        return self._held(state, last)

    def _held(self, state: FolderState | None, last: int | None) -> Held:
        """Return what the folder has of a query whose last batch in it is `last`."""
        held = Held(
            f"the folder {self.name}",
            is_complete=True,
            kept_in="the folder",
            way_out="Use a new checkpoint and a new folder to read the topic again",
        )
        ends = None if state is None or last is None else state.ends.get(last)
        return replace(held, batch=last, ends=ends)

    def check_start(self, topic: str, *, continues: bool) -> None:
        """Refuse a folder that another checkpoint has written to: it alone knows how far.

        Raises PipelineError.
        """
        if continues:
            raise PipelineError(
                "starting='table' continues where a table of Delta or of a database ends, and a "
                "folder of files does not keep that: write 'earliest', 'latest', a time or offsets"
            )
        if self._latest() >= 0:
            raise PipelineError(
                f"The folder {self.name} holds batches of another checkpoint, which alone knows "
                "where they end: use that checkpoint, or a new folder"
            )

    def version_of(self, query_id: str, batch: int) -> int | None:
        """Return the number of the list that has a batch, None where it is not known."""
        state = self._state()
        return state.number_in(query_id, batch, self._latest()) if state else None

    def write(self, frame: DataFrame, batch: Batch) -> int | None:
        """Append a batch and return the number of its list; None when the folder has it already."""
        if self.schema_changes == "add" and frame.schema.names != self.schema.names:
            # Rejected rows of several kinds have different columns.
            self.schema = frame.schema
            self.make()
        state = self._state()
        if state is None:
            raise PipelineError(
                f"The folder {self.name} was deleted while the query ran; this batch is not "
                "written. Use a new checkpoint to write all of it again"
            )
        if batch.is_replay:
            return self._write_replay(frame, batch, state)
        if self._query == batch.query_id != state.query:
            raise PipelineError(self._not_alone())
        number, is_new = number_of(
            state, self._latest(), batch.query_id, batch.number, once=batch.once
        )
        last = state.last_batch(batch.query_id, self._latest())
        is_there = last is not None and last >= batch.number
        planned = Planned(batch.checkpoint, batch.number, batch.begins, "", batch.promised)
        answer = decide(planned, self._held(state, last))
        if isinstance(answer, Refuse) and not is_there:
            raise PipelineError(answer.sentence)
        self._query = batch.query_id
        if number is None:
            return None
        if is_new:
            state = state.numbered(batch.query_id, batch.number, number)
        commit = read_metadata(batch.metadata)
        if commit is not None:
            state = state.ended(batch.number, digest(commit.offsets))
        if is_new or commit is not None:
            STATE.write(self._files, state)
            if self._latest() >= number:  # Spark would skip the number silently
                # What stands there now is not true: neither query may go on by it.
                STATE.write(self._files, replace(state, query=""))
                raise PipelineError(self._not_alone())
        sink = SparkFileSink(frame.sparkSession, self.format)
        sink.add_batch(self.location, self.partition_by, number, frame)
        self._keep_note(state, batch)
        return number

    def _write_replay(self, frame: DataFrame, batch: Batch, state: FolderState) -> int | None:
        """Append a replay between two batches of the folder's query."""
        latest = self._latest()
        number = latest + 1
        if state.replay is not None and state.replay[0] == batch.query_id:
            if state.replay[1] <= latest:
                return None
        else:
            STATE.write(self._files, state.replayed(batch.query_id, number, latest))
        sink = SparkFileSink(frame.sparkSession, self.format)
        sink.add_batch(self.location, self.partition_by, number, frame)
        return number

    def _not_alone(self) -> str:
        return (
            f"Another query writes to the folder {self.name} too; this batch is not written. Give "
            "each query a folder of its own"
        )

    def _keep_note(self, noted: FolderState, batch: Batch) -> None:
        """Note a batch that is written again, where another run has noted one of its number.

        Of two runs that write one number at the same time Spark's list has the files of one.
        """
        now = self._state()
        if now is not None and now.ends.get(batch.number) != noted.ends.get(batch.number):
            STATE.write(self._files, noted)

    def _state(self) -> FolderState | None:
        return STATE.read(self._files)

    def _latest(self) -> int:
        """Return the last number in Spark's lists, -1 for none."""
        names = (name.removesuffix(".compact") for name in self._files.names(LISTS))
        return max((int(name) for name in names if name.isdigit()), default=-1)
