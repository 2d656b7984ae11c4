"""Each known failure is recognized by something, says something, and names what is waited for."""

import re

from ottla.pipelines.failures.table import FIRST, OTHERS, PARTS
from ottla.pipelines.sinks.registered import SINKS

KNOWN = (*FIRST, *(known for kind in SINKS for known in kind.failures), *OTHERS)


def test_each_row_has_a_pattern_and_an_effect() -> None:
    for known in KNOWN:
        assert known.condition or known.kind or known.text, known
        assert known.sentence or known.retry, known


def test_what_is_waited_for_has_a_reason() -> None:
    for known in KNOWN:
        if known.retry is not None:
            assert known.retry.reason.format(servers="s", target="t", topics="a")


def test_each_pattern_compiles() -> None:
    for known in KNOWN:
        for pattern in (known.condition, known.kind, known.text):
            re.compile(pattern)
    for pattern, sentence in PARTS:
        re.compile(pattern)
        assert sentence.format(pair="")
