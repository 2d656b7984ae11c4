"""Failures of Iceberg 1.10, as Spark 4.0.0 gave them, become one line each."""

import pytest

from ottla.pipelines.failures.cause import Cause
from ottla.pipelines.failures.known import About, Wait
from ottla.pipelines.failures.sentences import passes_by_itself, sentence_for
from ottla.pipelines.failures.table import COMMIT
from ottla.pipelines.sinks.iceberg.failures import FAILURES

ABOUT = About(target="lake.db.t", failures=FAILURES)
OF_ICEBERG = "org.apache.iceberg.exceptions."


@pytest.mark.parametrize(
    ("cause", "words", "wait"),
    [
        (
            Cause("java.lang.IllegalStateException", "Table UUID does not match: current=a != b"),
            "The table lake.db.t was deleted and created again while the query ran. Use a new",
            None,
        ),
        (
            Cause(OF_ICEBERG + "NoSuchTableException", "Table does not exist: db.t"),
            "The table lake.db.t was deleted while the query ran: Table does not exist: db.t",
            None,
        ),
        (
            Cause(OF_ICEBERG + "ValidationException", "Metadata file for version 12 is missing"),
            "The table lake.db.t was deleted while the query ran",
            COMMIT,  # it is looked for again, and then a start says that it is gone
        ),
        (
            Cause(OF_ICEBERG + "ValidationException", "Found conflicting files that can contain"),
            "Another job committed to lake.db.t at the same time: Found conflicting files",
            COMMIT,
        ),
        (
            Cause(OF_ICEBERG + "CommitStateUnknownException", "Cannot determine"),
            "Another job committed to lake.db.t at the same time",
            COMMIT,
        ),
        (
            Cause("E", "Cannot find data", "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA"),
            "The columns of lake.db.t were changed while the query ran: Cannot find data. Start",
            None,
        ),
    ],
)
def test_a_sentence_and_what_is_waited_for(cause: Cause, words: str, wait: Wait | None) -> None:
    causes = [Cause("org.apache.spark.SparkException", "Job aborted"), cause]
    assert sentence_for(causes, ABOUT).startswith(words)
    assert passes_by_itself(causes, FAILURES) == wait
