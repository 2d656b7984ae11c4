"""Failures of PostgreSQL 15, as its driver 42.7.7 gave them, become one line each."""

import re

import pytest

from ottla.pipelines.failures.cause import Cause
from ottla.pipelines.failures.known import About
from ottla.pipelines.failures.sentences import sentence_for
from ottla.pipelines.sinks.postgresql.failures import FAILURES

ABOUT = About(target="public.t in postgresql://db/lake", failures=FAILURES)


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        (
            "22P05",
            'character with byte sequence 0xe2 0x82 0xac in encoding "UTF8" has no equivalent in '
            'encoding "LATIN1"',
            "has another encoding than UTF8, without a character of the rows: character with byte",
        ),
        (
            "42P10",
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
            "is gone: there is no unique or exclusion constraint .* Create it again, on the",
        ),
        (
            "25006",
            "cannot execute INSERT in a read-only transaction",
            "takes no writes: cannot execute INSERT in a read-only transaction. It may be a",
        ),
    ],
)
def test_a_failure_is_one_line_with_a_way_out(state: str, reason: str, words: str) -> None:
    cause = Cause("org.postgresql.util.PSQLException", f"ERROR: {reason}", f"SQLSTATE {state}")
    said = sentence_for([Cause("Py4JJavaError", "o1.execute"), cause], ABOUT)
    assert said is not None
    assert "\n" not in said
    assert re.search(words, said)
