"""Settings of a Spark session for a block: statements take no options."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.defaults import TIME_ZONE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT: Final = (
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.json.enablePartialResults",
    "spark.sql.jsonGenerator.ignoreNullFields",
    "spark.sql.legacy.castComplexTypesToString.enabled",
    "spark.sql.legacy.json.allowEmptyString.enabled",
    "spark.sql.legacy.sizeOfNull",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.parquet.outputTimestampType",
    "spark.sql.timestampType",
)
"""By these, and its time zone, Spark makes other values, or other texts, of the same row. A
checkpoint keeps them."""
OF_VALUES: Final = (TIME_ZONE, *KEPT, "spark.sql.storeAssignmentPolicy")

KEEPS_VALUES: Final = {"spark.sql.storeAssignmentPolicy": "STRICT"}
"""A column whose type does not hold each value of the rows fails the statement that writes them:
the table may have got another type since the start compared them. By default Spark makes 1 of 1.75.
"""


@contextlib.contextmanager
def settings_of(session: SparkSession, settings: Mapping[str, str | None]) -> Iterator[None]:
    """Give a session these settings for the block; None: the default."""
    before = {name: session.conf.get(name, None) for name in settings}
    try:
        _give(session, settings)
        yield
    finally:
        _give(session, before)


def _give(session: SparkSession, settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, value)


def value_settings_of(session: SparkSession) -> dict[str, str]:
    """Return the values of the settings in KEPT, which this Spark has."""
    from pyspark.errors import PySparkException

    found = {}
    for name in KEPT:
        with contextlib.suppress(PySparkException):  # a later Spark may not have it
            found[name] = str(session.conf.get(name))
    return found


class ValuesAsBefore:
    """What a session made of a row when this was made: Spark takes a copy of the session for each
    start of a query, and the user may have changed the session in between."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._settings = {name: session.conf.get(name, None) for name in OF_VALUES}

    def again(self) -> contextlib.AbstractContextManager[None]:
        """Give the session for the block those settings that have changed."""
        now = {name: self._session.conf.get(name, None) for name in OF_VALUES}
        changed = {name: value for name, value in self._settings.items() if now[name] != value}
        return settings_of(self._session, changed)
