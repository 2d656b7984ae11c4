"""`[sink]`: where the rows go. Each sink has one value, with its arguments, in its folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.failures.known import Known
from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.run.frame import Written
from ottla.pipelines.run.specification import MODES, asked
from ottla.pipelines.run.start import start_or_write
from ottla.pipelines.spec.option import Option, option, options_of
from ottla.pipelines.target.keyed_table import DELETES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ottla.pipelines.run.specification import Specification
    from ottla.pipelines.spec.fields import Fields
    from ottla.pipelines.spec.maintained import Maintained
    from ottla.pipelines.target.port import Sink

_TABLE: Final = re.compile(r"[A-Za-z_]\w*(\.\w+){0,2}")


@dataclass(frozen=True, slots=True)
class Reading:
    """A file that is read: `path` makes a path of it one of the machine; `source` is how the
    pipeline reaches the topic that it reads.
    """

    path: Callable[[str], str]
    source: KafkaSettings | None


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """`[sink]` of one kind.

    `title`: the heading in the reference. `marked_by`: the field that a file has for this kind
    alone; a kind without one is chosen by `format`, which is one of `formats`. `others` says what
    is wrong with the fields of other kinds. `besides`: what `read` takes beside the options.
    `failures`: those that this kind alone has. `has_maintenance`: see `maintain`.
    """

    title: ClassVar[str]
    marked_by: ClassVar[str] = ""
    formats: ClassVar[tuple[str, ...]] = ()
    others: ClassVar[str]
    besides: ClassVar[tuple[Option, ...]] = ()
    failures: ClassVar[tuple[Known, ...]] = ()
    keeps_rejects: ClassVar[bool] = True
    has_maintenance: ClassVar[bool] = False

    @property
    def target(self) -> str:
        """The target as a sentence names it."""
        raise NotImplementedError

    @property
    def folder(self) -> str | None:
        """The folder of the rows, None where they lie in none that is named."""
        return None

    @property
    def written_topic(self) -> tuple[KafkaSettings, str] | None:
        """The topic that is written and how its cluster is reached, None for others."""
        return None

    @classmethod
    def read(cls, fields: Fields, given: dict[str, Any], about: Reading) -> Self:
        """Return what a file gives, and collect what is wrong with it in `fields`."""
        return cls(**given)

    @property
    def shown(self) -> str:
        """The target as a sentence names it before anything is looked up."""
        return str(self.target)

    def sink(self, asked: Specification) -> Sink:
        """Return the target of these arguments for the rows of a frame. Raises PipelineError."""
        raise NotImplementedError

    @classmethod
    def start(cls, caller: str, given: Mapping[str, Any]) -> StreamingQuery | Written:
        """Start the query of a caller, or write its batch frame. `given`: its arguments, which are
        called as the options are.

        Raises PipelineError.
        """
        require_pyspark()
        specification = asked(caller, given)
        spec = cls(**{name: given[name] for name in options_of(cls)})
        return start_or_write(specification, spec.shown, spec.sink, cls.failures)

    def rejected(self, spark: SparkSession) -> Sink:
        """Return the target of the rows that are rejected. Raises PipelineError."""
        raise NotImplementedError

    def maintain(
        self, spark: SparkSession, *, keep_hours: float | None, dry_run: bool
    ) -> list[Maintained]:
        """Join small files of the target and of those beside it, and delete unused ones.

        Raises PipelineError.
        """
        raise NotImplementedError


def check(fields: Fields, name: str, read: Callable[[], object]) -> None:
    """Call `read`, and add the PipelineError that it raises to the problems of a field."""
    try:
        read()
    except PipelineError as error:
        message = str(error)
        about = "settings" if message.startswith("settings") else name
        fields.problem(about, message.removeprefix(f"{about}: ").removeprefix(f"{about}="))


@dataclass(frozen=True, slots=True)
class TableOptions(SinkSpec):
    """What all sinks but a topic take."""

    target: str = option(
        "a path, which has a slash, or a table's name", example="./lake/flights", required=True
    )
    schema_changes: str = option(
        "columns that the target does not have: refuse them, or add them",
        default="refuse",
        choices=("refuse", "add"),
    )


@dataclass(frozen=True, slots=True)
class KeyedOptions(TableOptions):
    """What a table takes that may have keys."""

    keys: tuple[str, ...] = option(
        "the columns of the key: its last record wins", "names", default=(), example="'id'"
    )
    order_by: str | None = option(
        "the column that orders the records of a key; by default their offsets",
        default=None,
        example="timestamp",
    )
    deletes: str = option(
        "the row of a deleted key: remove it, or mark it in `is_deleted`",
        default=DELETES[0],
        choices=DELETES,
    )
    apply_as_deletes: str | None = option(
        "which records delete the row of their key, as SQL, beside those that `tombstone` marks",
        default=None,
        example="op = 'd'",
    )
    apply_as_truncates: str | None = option(
        "which records truncate the table, as SQL: the rows that are older go",
        default=None,
        example="op = 't'",
    )
    ignore_nulls: bool = option(
        "a null in a record keeps the value that its key has", "flag", default=False
    )
    mode: str = option(
        "`update`: the query groups rows, and the new result of a group replaces its row",
        default=MODES[0],
        choices=MODES,
    )
    max_ahead: str | None = option(
        "how far ahead of the clock `order_by` may be, such as `1 hour`",
        default=None,
        example="1 hour",
    )


@dataclass(frozen=True, slots=True)
class LakeOptions(TableOptions):
    """What a table or a folder of a data lake takes: its target may be a path."""

    needs_path: ClassVar[bool] = False

    @property
    def folder(self) -> str | None:
        """The path, None for a table's name."""
        return self.target if "/" in self.target else None

    @classmethod
    def read(cls, fields: Fields, given: dict[str, Any], about: Reading) -> Self:
        """Return what a file gives; a target with a slash is a path."""
        target = given["target"]
        if "/" in target:
            return cls(**given | {"target": about.path(target)})
        if target and cls.needs_path:
            fields.problem("target", f"{target!r}: files need a path with a slash, './{target}'")
        elif target and not _TABLE.fullmatch(target):
            fields.problem(
                "target",
                f"{target!r}: write a path with a slash, such as './flights', or a table's name, "
                "such as 'lake.flights'",
            )
        return cls(**given)
