"""The constraints of a Delta table, checked before Delta checks them.

Delta refuses a whole commit for one row that violates a constraint. The rows of a stream are
therefore marked with the constraint that they violate, and counted, in the plan of the stream
itself: the batch is read once, and a second time only when there are such rows.

Delta's protocol keeps them in three places: the table's property `delta.constraints.<name>` (CHECK,
violated by false and by null), `nullable: false` of a field (NOT NULL; of a nested one its parents
are not null either), and a field's `__CHAR_VARCHAR_TYPE_STRING`, such as `varchar(5)`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.spark.json_texts import WHOLE_TIMES
from ottla.pipelines.target.text_limits import fits_limits

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

METRIC: Final = "ottla.constraints"  # the name of the count in the query's progress
VIOLATED: Final = "violated"
REASON: Final = "_ottla_violated"
ROW: Final = "row"
ASKED: Final = "ottla.asked"
"""What the metadata of REASON says: the conditions with their reasons, and the columns of the table
that the rows lack."""

_CHECK: Final = "delta.constraints."
_LENGTH: Final = "__CHAR_VARCHAR_TYPE_STRING"
_NO_FOLDER: Final = ("", "__HIVE_DEFAULT_PARTITION__")
"""Texts that Spark writes as null into a column which names folders."""
# The table computes these columns itself where the rows lack them.
_COMPUTED: Final = ("CURRENT_DEFAULT", "delta.generationExpression", "delta.identity.start")


@dataclass(frozen=True, slots=True)
class Constraint:
    """`condition` is SQL that is true for a row that fits; `reason` says what is violated.

    `is_of_row`: a null, or another column, may decide about it: it is one for the whole row.
    """

    condition: str
    reason: str
    is_of_row: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of the rows of a frame: the first condition that is not true gives the reason.

    `added`: columns that the conditions may name and the rows lack, with their types; null.
    """

    conditions: tuple[Constraint, ...] = ()
    added: tuple[tuple[str, str], ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "conditions": [[one.condition, one.reason] for one in self.conditions],
            "added": [list(one) for one in self.added],
        }

    def also(self, conditions: tuple[Constraint, ...]) -> Asked:
        """Return these conditions with others after them."""
        return Asked((*self.conditions, *conditions), self.added)


def read_asked(document: Mapping[str, Any]) -> Asked:
    """Return what `document` gave. Raises KeyError, TypeError or ValueError for another one."""
    return Asked(
        tuple(
            Constraint(str(condition), str(reason)) for condition, reason in document["conditions"]
        ),
        tuple((str(name), str(kind)) for name, kind in document["added"]),
    )


def read_constraints(properties: Mapping[str, str], schema: StructType) -> tuple[Constraint, ...]:
    """Return the constraints in a table's properties and schema, NOT NULL first."""
    checks = [
        Constraint(
            text, f"violates the CHECK constraint {name[len(_CHECK) :]} ({text})", is_of_row=True
        )
        for name, text in sorted(properties.items())
        if name.lower().startswith(_CHECK)
    ]
    return (*_of_fields(schema), *checks)


def _of_fields(schema: StructType, parents: tuple[str, ...] = ()) -> Iterator[Constraint]:
    from pyspark.sql.types import StructType

    for field in schema.fields:
        if any(name in field.metadata for name in _COMPUTED):
            continue
        path = (*parents, field.name)
        column = ".".join(map(quoted, path))
        shown = ".".join(path)
        if not field.nullable:
            reason = f"the column {shown} is null, but NOT NULL"
            yield Constraint(f"{column} IS NOT NULL", reason, is_of_row=True)
        kind = str(field.metadata.get(_LENGTH, ""))
        if (limit := fits_limits(kind, column)) is not None:
            of = "" if kind.endswith(")") else "a text in "
            yield Constraint(limit, f"{of}the column {shown} is longer than {kind} allows")
        if isinstance(field.dataType, StructType):
            yield from _of_fields(field.dataType, path)


def partition_constraints(schema: StructType, names: Iterable[str]) -> tuple[Constraint, ...]:
    """Return what the texts of columns must fulfil by which files lie in folders.

    For these columns the empty text and Hive's name of null become null, in silence.
    """
    wanted = {name.lower() for name in names}
    listed = ", ".join(f"'{text}'" for text in _NO_FOLDER)
    return tuple(
        Constraint(
            f"{quoted(one.name)} IS NULL OR {quoted(one.name)} NOT IN ({listed})",
            f"the column {one.name} is '' or '{_NO_FOLDER[1]}', which would become null: the "
            "target is partitioned by it",
        )
        for one in schema.fields
        if one.name.lower() in wanted and one.dataType.typeName().startswith(("string", "varchar"))
    )


def padded(schema: StructType) -> dict[str, str]:
    """Return the columns whose texts a table pads with spaces, by their names, and their types."""
    kinds = {field.name: str(field.metadata.get(_LENGTH, "")) for field in schema.fields}
    return {name: kind for name, kind in kinds.items() if kind.startswith("char(")}


def mark(frame: DataFrame, table: StructType, constraints: tuple[Constraint, ...]) -> DataFrame:
    """Add the column REASON, null for a row that fits, and count the others as METRIC.

    A frame on which no constraint can be violated is returned as it is. Constraints that Spark
    cannot evaluate on the frame, such as one on a column that the table computes, are left to
    Delta.
    """
    from pyspark.sql import functions as F  # noqa: N812

    added = _missing_columns(frame, table)
    padded = _with_columns(frame, added)
    proven = {f"`{field.name}` IS NOT NULL" for field in frame.schema.fields if not field.nullable}
    found = [one for one in constraints if one.condition not in proven and _resolves(padded, one)]
    if not found:
        return frame
    asked = Asked(tuple(found), added)
    return _marked(frame, asked).observe(METRIC, F.count(REASON).alias(VIOLATED))


def mark_again(frame: DataFrame, asked: Asked) -> DataFrame | None:
    """Mark the rows of a frame by what was asked of it once; nothing is counted.

    None where a condition cannot be evaluated on the frame.
    """
    padded = _with_columns(frame, asked.added)
    if not all(_resolves(padded, one) for one in asked.conditions):
        return None
    return _marked(frame, asked)


def _marked(frame: DataFrame, asked: Asked) -> DataFrame:
    """Add the column REASON, which says in its metadata what was asked."""
    from pyspark.sql import functions as F  # noqa: N812

    reason: Column = F.lit(None).cast("string")
    for constraint in reversed(asked.conditions):
        fits = F.coalesce(F.expr(constraint.condition), F.lit(False))
        reason = F.when(~fits, F.lit(constraint.reason)).otherwise(reason)
    marked = _with_columns(frame, asked.added).withColumn(REASON, reason)
    return saying(marked.select(*map(quoted, frame.columns), REASON), asked)


def saying(marked: DataFrame, asked: Asked) -> DataFrame:
    """Return a marked frame whose column REASON says what was asked."""
    return marked.withMetadata(REASON, {ASKED: json.dumps(asked.document())})


def asked_of(frame: DataFrame) -> Asked:
    """Return what was asked of the rows of a frame: nothing of one that is not marked."""
    if not is_marked(frame):
        return Asked()
    text = frame.schema[REASON].metadata.get(ASKED)
    return Asked() if text is None else read_asked(json.loads(text))


def _missing_columns(frame: DataFrame, table: StructType) -> tuple[tuple[str, str], ...]:
    """Return the table's columns that a frame lacks, with their types: Delta writes null there."""
    known = {name.lower() for name in frame.columns}
    return tuple(
        (field.name, field.dataType.simpleString())
        for field in table.fields
        if field.name.lower() not in known and not any(name in field.metadata for name in _COMPUTED)
    )


def _with_columns(frame: DataFrame, added: tuple[tuple[str, str], ...]) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    return frame.withColumns({name: F.lit(None).cast(kind) for name, kind in added})


def _resolves(frame: DataFrame, constraint: Constraint) -> bool:
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import functions as F  # noqa: N812

    try:
        frame.select(F.expr(constraint.condition).cast("boolean"))
    except (AnalysisException, ParseException):
        return False
    return True


def is_marked(frame: DataFrame) -> bool:
    """Tell whether `mark` added its column to a frame."""
    return REASON in frame.columns


def fitting(marked: DataFrame) -> DataFrame:
    """Return of a marked frame the rows that fit."""
    # The condition as text: a Column takes several calls of the JVM, in each batch.
    return marked.where(f"{REASON} IS NULL").drop(REASON)


def refused(marked: DataFrame) -> DataFrame:
    """Return of a marked frame the rows that do not fit, as rows to reject.

    They have `reason`, the whole row as JSON in ROW (binary fields as base64), and `partition`,
    `offset` and `timestamp` where the frame still has these columns of the topic.
    """
    from pyspark.sql import functions as F  # noqa: N812

    fields = [field for field in marked.schema.fields if field.name != REASON]
    types = {field.name: field.dataType.simpleString() for field in fields}
    positions = [
        F.col(name)
        for name, kind in (("partition", "int"), ("offset", "bigint"), ("timestamp", "timestamp"))
        if types.get(name) == kind
    ]
    row = F.to_json(
        F.struct(*map(quoted, types)), {"ignoreNullFields": "false", **WHOLE_TIMES}
    ).alias(ROW)
    bad = marked.where(F.col(REASON).isNotNull())
    return bad.select(*positions, F.col(REASON).alias("reason"), row)
