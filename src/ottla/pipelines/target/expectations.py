"""`expect`: conditions that the rows of a stream are to fulfil, and what becomes of other rows.

    reject   the row goes to `<target>_rejected`, with the name and the condition as its reason
    drop     the row is left out, and counted
    stop     the query fails before any row of the batch is written

They are asked in the plan of the stream, after the constraints of the target. A row does not fulfil
a condition that is false or null. A tombstone has no values to ask, and fulfils all.

The plan only marks the rows. They are left out where the batch is written (`settled`), so that a
batch that another run wrote can be decided as that run did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.failures.marks import UNEXPECTED
from ottla.pipelines.spark.column_names import quoted
from ottla.pipelines.target.constraints import REASON, Constraint, asked_of, is_marked, saying

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ON_UNEXPECTED: Final = ("reject", "drop", "stop")
METRIC: Final = "ottla.expectations"
REJECTED: Final = "unexpected"
DROPPED: Final = "dropped"
_OWN: Final = "_ottla_unexpected"
_DROPPED: Final = "_ottla_dropped"
_STOPS: Final = "_ottla_stops"


@dataclass(frozen=True, slots=True)
class Expectations:
    """`conditions`: what is expected, by name, as SQL. `otherwise`: one of ON_UNEXPECTED.

    `spared`: columns that are true in rows which are not asked.
    """

    conditions: tuple[tuple[str, str], ...]
    otherwise: str = ON_UNEXPECTED[0]
    spared: tuple[str, ...] = ()

    def constraints(self) -> tuple[Constraint, ...]:
        """Return the conditions with the reason of a row that does not fulfil them."""
        spared = "".join(f"coalesce({name}, false) OR " for name in self.spared)
        return tuple(
            Constraint(f"{spared}({condition})", f"does not fulfil {name} ({condition})")
            for name, condition in self.conditions
        )


def read_expectations(expect: Any, on_unexpected: Any) -> tuple[tuple[str, str], ...]:
    """Return the conditions of the arguments `expect` and `on_unexpected`. Raises PipelineError."""
    if on_unexpected not in ON_UNEXPECTED:
        raise PipelineError(f"on_unexpected={on_unexpected!r}: write 'reject', 'drop' or 'stop'")
    if expect is not None and not isinstance(expect, Mapping | tuple):
        raise PipelineError(f"expect={expect!r}: write names and conditions, such as {_EXAMPLE}")
    pairs = tuple(dict(expect or {}).items())
    for name, condition in pairs:
        for text in (name, condition):
            if not isinstance(text, str) or not text.strip():
                raise PipelineError(
                    f"expect={name!r}: {condition!r}: write a name and a condition as SQL, such as "
                    f"{_EXAMPLE}"
                )
    if not pairs and on_unexpected != ON_UNEXPECTED[0]:
        raise PipelineError(
            f"on_unexpected={on_unexpected!r} says what becomes of rows that do not fulfil expect: "
            f"write expect too, such as {_EXAMPLE}"
        )
    return pairs


_EXAMPLE: Final = "expect={'short': 'delay < 1000'}"


def check_conditions(frame: DataFrame, conditions: tuple[tuple[str, str], ...]) -> None:
    """Refuse conditions that cannot be asked of a row of the frame. Raises PipelineError."""
    for name, condition in conditions:
        check_condition(frame, condition, f"expect={name!r}")


def check_condition(frame: DataFrame, condition: str, argument: str) -> None:
    """Refuse a condition that cannot be asked of a row of the frame. Raises PipelineError."""
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

    try:
        kind = frame.select(F.expr(condition)).schema.fields[0].dataType.simpleString()
    except (AnalysisException, ParseException) as error:
        columns = ", ".join(frame.columns)
        reason = str(error).splitlines()[0]
        raise PipelineError(
            f"{argument}: {condition!r} is no condition on a row: {reason}. The rows have {columns}"
        ) from error
    if kind != "boolean":
        raise PipelineError(
            f"{argument}: {condition!r} is {kind}, and no condition: write a comparison, such as "
            "'delay < 1000'"
        )


def expecting(frame: DataFrame, expectations: Expectations) -> DataFrame:
    """Ask the expectations of each row of a frame that the target may have marked.

    The rows are all there, with marks; see `settled` and `constraints.fitting`.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if not expectations.conditions:
        return frame
    conditions = expectations.constraints()
    own: Column = F.lit(None).cast("string")
    for one in reversed(conditions):
        own = F.when(~F.coalesce(F.expr(one.condition), F.lit(False)), one.reason).otherwise(own)
    names = [quoted(name) for name in frame.columns]
    if is_marked(frame):
        own = F.when(F.col(REASON).isNull(), own)
    asked = frame.withColumn(_OWN, own)
    if expectations.otherwise == "stop":
        values = [quoted(name) for name in frame.columns if name != REASON]
        row = F.to_json(F.struct(*values), {"ignoreNullFields": "false"})
        words = F.concat(F.lit(f"{UNEXPECTED} "), F.col(_OWN), F.lit(": "), row)
        return asked.select(*names, words.alias(_STOPS))
    if expectations.otherwise == "drop":
        counted = asked.observe(METRIC, F.count(_OWN).alias(DROPPED))
        return counted.withColumnRenamed(_OWN, _DROPPED)
    counted = asked.observe(METRIC, F.count(_OWN).alias(REJECTED))
    reason = F.coalesce(REASON, _OWN) if is_marked(frame) else F.col(_OWN)
    marked = counted.withColumn(REASON, reason).drop(_OWN)
    return saying(marked, asked_of(frame).also(conditions))


def settled(frame: DataFrame) -> DataFrame:
    """Return the rows of an asked frame but those to be dropped; reading one that stops fails."""
    # As text, like `constraints.fitting`.
    if _DROPPED in frame.columns:
        return frame.where(f"{_DROPPED} IS NULL").drop(_DROPPED)
    if _STOPS in frame.columns:
        stops = f"if({_STOPS} IS NULL, true, CAST(raise_error({_STOPS}) AS BOOLEAN))"
        return frame.where(stops).drop(_STOPS)
    return frame


def unasked(frame: DataFrame) -> DataFrame:
    """Return all rows of an asked frame, without any marks."""
    return frame.drop(REASON, _DROPPED, _STOPS)


def rejected_in(counted: Mapping[str, Mapping[str, Any]]) -> int | None:
    """Return how many rows of a batch were rejected for an expectation, None where none is."""
    found = counted.get(METRIC, {}).get(REJECTED)
    return None if found is None else int(found)


def dropped_in(counted: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how many rows of a batch were dropped for an expectation."""
    return int(counted.get(METRIC, {}).get(DROPPED, 0))
