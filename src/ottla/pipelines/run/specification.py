"""`Specification`: what the caller of `to_delta` asked for, before anything is looked up."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.delivery import DeliveryGuarantee, read_guarantee
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.topic_name import wrong_name
from ottla.pipelines.run.column_origins import position_of
from ottla.pipelines.source.source import sources_of
from ottla.pipelines.spark.defaults import TIME_ZONE
from ottla.pipelines.spark.jvm.plan import nodes
from ottla.pipelines.spark.jvm.required import require_jvm
from ottla.pipelines.spark.session_settings import value_settings_of
from ottla.pipelines.target.expectations import (
    Expectations,
    check_condition,
    check_conditions,
    read_expectations,
)
from ottla.pipelines.target.far_ahead import check_max_ahead, read_length_s
from ottla.pipelines.target.keyed_table import (
    DELETES,
    TOMBSTONE,
    TRUNCATION,
    KeyedTable,
    read_keyed_table,
    read_results,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MODES: Final = ("append", "update")
"""`update`: each batch has the new results of the groups that changed."""
_TRIGGERS: Final = ("processingTime", "availableNow", "once")


@dataclass(frozen=True)
class Specification:
    """The arguments of `to_delta` that other sinks have too; consistent in themselves.

    Those of `to_topic` are the same, with the topic as the target. `name` is the query's; None:
    that of the target. `rebuild` makes the frame again, for new schemas; None where that is
    impossible.

    Raises PipelineError for an argument that is not allowed.
    """

    frame: DataFrame
    target: str | os.PathLike[str]
    checkpoint: str | os.PathLike[str]
    _: KW_ONLY
    trigger: Mapping[str, Any] | None = None
    delivery: str = DeliveryGuarantee.EXACTLY_ONCE
    schema_changes: str = "refuse"
    on_lost: str = "stop"
    on_rejects: str = "stop"
    partition_by: str | Sequence[str] = ()
    group: str | None = None
    max_rejects: int | None = None
    dead_letters: str | None = None
    keys: str | Sequence[str] = ()
    order_by: str | None = None
    history: bool = False
    deletes: str = "remove"
    max_ahead: str | None = None
    apply_as_deletes: str | None = None
    apply_as_truncates: str | None = None
    track: str | Sequence[str] = ()
    ignore_nulls: bool = False
    mode: str = "append"
    expect: Mapping[str, str] | tuple[tuple[str, str], ...] | None = None
    on_unexpected: str = "reject"
    caller: str = "to_delta"
    name: str | None = None
    rebuild: Callable[[], DataFrame] | None = None

    def __post_init__(self) -> None:
        from pyspark.sql import DataFrame

        if not isinstance(self.frame, DataFrame):
            raise PipelineError(f"{self.caller} takes a DataFrame, not {type(self.frame).__name__}")
        require_jvm(self.frame.sparkSession)
        if not self.checkpoint or not isinstance(self.checkpoint, str | os.PathLike):
            raise PipelineError(
                f"{self.caller} needs a checkpoint: a folder where the query keeps its progress, "
                "kept as long as the target, such as checkpoint='./checkpoints/flights'"
            )
        chosen = self.trigger or {}
        if not isinstance(chosen, Mapping) or len(chosen) > 1 or not set(chosen) <= set(_TRIGGERS):
            raise PipelineError(
                f"trigger={self.trigger!r}: write one of {{'availableNow': True}}, "
                "{'processingTime': '10 seconds'}, {'once': True}"
            )
        most = self.max_rejects
        if most is not None and (type(most) is not int or most < 0):
            raise PipelineError(f"max_rejects={most!r}: write a number of rows, or None")
        if self.group is not None and (not isinstance(self.group, str) or not self.group.strip()):
            raise PipelineError(
                f"group={self.group!r}: write the name of a group, such as 'flights-delta'"
            )
        if self.dead_letters is not None and (wrong := wrong_name(self.dead_letters)):
            raise PipelineError(f"dead_letters={wrong}")
        read_guarantee(self.delivery, "Delta", frozenset(DeliveryGuarantee))
        _check_one_of("schema_changes", self.schema_changes, ("refuse", "add"))
        _check_one_of("on_lost", self.on_lost, ("stop", "skip"))
        _check_one_of("on_rejects", self.on_rejects, ("stop", "continue"))
        _check_columns("keys", self.keys, "id")
        _check_columns("partition_by", self.partition_by, "day")
        # Spark ignores the case of a column's name.
        if len({name.lower() for name in self.partition_columns}) < len(self.partition_columns):
            raise PipelineError(f"partition_by={self.partition_by!r} names a column twice")
        _check_one_of("deletes", self.deletes, DELETES)
        self._check_versions()
        if not self.key_columns and (
            self.order_by is not None or self.history or self.deletes != DELETES[0]
        ):
            raise PipelineError(
                "order_by, history and deletes are for tables with keys: name the columns of the "
                "key, such as keys=['id']"
            )
        if self.apply_as_deletes is not None:
            self._check_marks("apply_as_deletes", self.apply_as_deletes, TOMBSTONE)
        if self.apply_as_truncates is not None:
            self._check_marks("apply_as_truncates", self.apply_as_truncates, TRUNCATION)
            if not self.frame.isStreaming:
                raise PipelineError("apply_as_truncates is for streaming frames: leave it out")
        object.__setattr__(self, "frame", self.with_marks(self.frame))
        _check_one_of("mode", self.mode, MODES)
        if self.mode == "update":
            self._check_update()
        read_expectations(self.expect, self.on_unexpected)
        if self.max_ahead is not None:
            read_length_s(self.max_ahead)
            if not self.key_columns:
                raise PipelineError(
                    "max_ahead is for tables with keys and order_by: leave it out, or filter the "
                    "rows in the query"
                )

    def _check_versions(self) -> None:
        _check_columns("track", self.track, "city")
        if self.track and not self.history:
            raise PipelineError(
                f"track={self.track!r} says which columns make a new version of a key: it is for "
                "tables with history=True. Without it a table has no versions"
            )
        if type(self.ignore_nulls) is not bool:
            raise PipelineError(f"ignore_nulls={self.ignore_nulls!r}: write True or False")
        if self.ignore_nulls and (not self.key_columns or self.mode == "update"):
            raise PipelineError(
                "ignore_nulls keeps what the row of a key has where a record is null: it is for "
                "tables with keys, such as keys=['id'], and not for mode='update'"
            )

    def with_marks(self, frame: DataFrame) -> DataFrame:
        """Return a frame of the query with the marks of the rows that `apply_as_deletes` and
        `apply_as_truncates` name."""
        from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

        marks = {TOMBSTONE: self.apply_as_deletes, TRUNCATION: self.apply_as_truncates}
        added = {}
        for name, condition in marks.items():
            if condition is None:
                continue
            is_marked = F.coalesce(F.expr(condition), F.lit(False))
            if name in frame.columns:
                is_marked = F.coalesce(F.col(name), F.lit(False)) | is_marked
            added[name] = is_marked
        return frame.withColumns(added) if added else frame

    def _check_marks(self, argument: str, condition: str, mark: str) -> None:
        """Refuse a condition that cannot mark rows in the column `mark`."""
        does = "delete the row of their key" if mark == TOMBSTONE else "truncate the table"
        if not self.key_columns or self.mode == "update":
            raise PipelineError(
                f"{argument} says which records {does}: it is for tables with keys, and not with "
                "mode='update'"
            )
        if not isinstance(condition, str) or not condition.strip():
            example = "op = 'd'" if mark == TOMBSTONE else "op = 't'"
            raise PipelineError(
                f'{argument}={condition!r}: write a condition as SQL, such as "{example}"'
            )
        check_condition(self.frame, condition, argument)
        for field in self.frame.schema.fields:
            kind = field.dataType.simpleString()
            is_mark = field.name == mark and kind == "boolean"
            if field.name.lower() == mark and not is_mark:
                raise PipelineError(
                    f"The frame has the column {field.name} ({kind}), and {argument} marks rows in "
                    f"the column {mark} (boolean): give it another name"
                )

    def _check_update(self) -> None:
        """Refuse what does not fit results that replace each other."""
        if not self.key_columns:
            raise PipelineError(
                "mode='update' replaces the result of each group: name the columns of the GROUP BY "
                "as the key, such as keys=['carrier']"
            )
        if self.order_by is not None or self.history or self.deletes != DELETES[0]:
            raise PipelineError(
                "mode='update' takes each result that comes as the newest, and order_by, history "
                "and deletes are for records: leave them out"
            )
        if not self.frame.isStreaming:
            raise PipelineError("mode='update' is for streaming frames: leave it out")
        if self.on_lost == "skip":
            raise PipelineError(
                "on_lost='skip' begins a new query without the state of the former one, whose "
                "results mode='update' would replace by lower ones: write on_lost='stop'"
            )
        if not any(node.kind == "Aggregate" and node.is_streaming for node in nodes(self.frame)):
            raise PipelineError(
                "mode='update' is for a query that groups the rows of a topic, such as SELECT "
                "carrier, count(*) ... GROUP BY carrier: leave it out"
            )

    @functools.cached_property
    def expectations(self) -> Expectations:
        """What the rows are expected to fulfil. Raises PipelineError."""
        conditions = read_expectations(self.expect, self.on_unexpected)
        check_conditions(self.frame, conditions)
        keyed = self.keyed_table
        marks = () if keyed is None else keyed.marks
        return Expectations(conditions, self.on_unexpected, marks)

    @property
    def ends_by_itself(self) -> bool:
        """True where the query takes what the topic has now, and ends."""
        return bool({"availableNow", "once"} & set(self.trigger or {}))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of `keys`; none for a table that is appended to."""
        return (self.keys,) if isinstance(self.keys, str) else (*self.keys,)

    @functools.cached_property
    def keyed_table(self) -> KeyedTable | None:
        """The table with keys, None for one that is appended to. Raises PipelineError."""
        if not self.key_columns:
            return None
        if self.mode == "update":
            return read_results(self.frame.schema, self.key_columns)
        keyed = read_keyed_table(
            self.frame.schema,
            self.key_columns,
            order_by=self.order_by,
            history=self.history,
            deletes=self.deletes,
            streaming=self.frame.isStreaming,
            position=position_of(self.frame),
            track=(self.track,) if isinstance(self.track, str) else self.track,
            ignore_nulls=self.ignore_nulls,
            has_truncations=self._has_truncations,
        )
        check_max_ahead(self.max_ahead, keyed, self.frame.schema)
        return keyed

    @property
    def _has_truncations(self) -> bool:
        """Whether the column `truncation` marks rows that truncate the table: a frame may have one
        of this name that says something else.
        """
        if self.apply_as_truncates is not None:
            return True
        asked = any(source.truncate == "apply" for _, source in sources_of(self.frame))
        return asked and TRUNCATION in self.frame.columns

    @property
    def time_zone(self) -> str:
        """The session's time zone: that of times which name none."""
        return str(self.frame.sparkSession.conf.get(TIME_ZONE))

    @property
    def value_settings(self) -> dict[str, str]:
        """The session's settings by which Spark makes the values of rows."""
        return value_settings_of(self.frame.sparkSession)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns of `partition_by`."""
        return (self.partition_by,) if isinstance(self.partition_by, str) else (*self.partition_by,)


def asked(caller: str, given: Mapping[str, Any]) -> Specification:
    """Return what a caller was asked for. `given`: its arguments, which it has by the same names.

    Of `df` the frame that was given, or that the function which was given makes.
    """
    df = given["df"]
    names = {one.name for one in fields(Specification)}
    known = {name: value for name, value in given.items() if name in names}
    if callable(df):
        return Specification(df(), **known, caller=caller, rebuild=df)
    return Specification(df, **known, caller=caller)


def _check_columns(name: str, columns: object, example: str) -> None:
    several = (columns,) if isinstance(columns, str) else columns
    if not isinstance(several, Collection) or not all(
        isinstance(column, str) and column for column in several
    ):
        raise PipelineError(f"{name}={columns!r}: write names of columns, such as [{example!r}]")


def _check_one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise PipelineError(f"{name}={value!r}: write {' or '.join(map(repr, allowed))}")
