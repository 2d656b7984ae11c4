"""Settings of a Spark session for a block: statements take no options."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEEPS_VALUES: Final = {"spark.sql.storeAssignmentPolicy": "STRICT"}
"""A column whose type does not hold each value of the rows fails the statement that writes them:
the table may have got another type since the start compared them. By default Spark makes 1 of 1.75.
"""


@contextlib.contextmanager
def settings_of(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Give a session these settings for the block."""
    before = {name: session.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, former in before.items():
            if former is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, former)
