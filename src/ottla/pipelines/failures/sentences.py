"""Looks failures up in the table: the sentence for a chain of causes, and what is waited for. Pure.

A broker that restarts, a leader that moves, a storage that is throttled and a commit that met
another one pass by themselves. Everything else would fail again at once, so it is not retried.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ottla.pipelines.failures.cause import Cause, one_line
from ottla.pipelines.failures.known import About, Found, Known, Wait
from ottla.pipelines.failures.table import FIRST, LASTING, OTHERS, PARTS
from ottla.pipelines.failures.words import fields, unknown


def sentence_for(causes: Sequence[Cause], about: About) -> str:
    """Return one line for a chain of causes, the outermost first."""
    for known in (*FIRST, *about.failures, *OTHERS):
        found = _find(known, causes, about)
        if found is None or not known.sentence:
            continue
        if isinstance(known.sentence, str):
            return one_line(_format(known.sentence, found))
        if sentence := known.sentence(found):
            return one_line(sentence)
    return one_line(unknown(causes) + about.while_reading)


def passes_by_itself(causes: Sequence[Cause], failures: Sequence[Known]) -> Wait | None:
    """Return what to wait for, None where a retry cannot help; `failures` are those of the target.

    What `rejects_rows` passes where the target says by now which rows it refuses.
    """
    if any(re.search(LASTING, f"{cause.kind} {cause.message}") for cause in causes):
        return None
    about = About()
    return next(
        (
            known.retry
            for known in (*FIRST, *failures, *OTHERS)
            if known.retry and _find(known, causes, about)
        ),
        None,
    )


def explain(words: str, pair: str) -> str | None:
    """Return the sentence for parts of Spark that do not belong together, or None.

    `words` is what the exception says, with its causes; `pair` the versions that would work.
    """
    found = (text.format(pair=pair).strip() for pattern, text in PARTS if re.search(pattern, words))
    return next(found, None)


def _find(known: Known, causes: Sequence[Cause], about: About) -> Found | None:
    # The innermost text says most; the outermost class and condition are those of the failure.
    for cause in reversed(causes) if known.text else causes:
        if known.condition and not re.fullmatch(known.condition, cause.condition):
            continue
        if not re.search(known.kind, cause.kind):
            continue
        match = re.search(known.text, f"{cause.kind}: {cause.message}") if known.text else None
        if match or not known.text:
            return Found(cause, match, causes, about)
    return None


def _format(sentence: str, found: Found) -> str:
    given = fields(found)
    return sentence.format(given["whole"], given["first"], **given)
