"""The known name that was most likely meant by an unknown one."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """None if no name is similar. Upper and lower case count less than letters."""
    # Imported late: difflib costs 5 ms, and only a typing error needs it.
    from difflib import get_close_matches

    choices = sorted(known)
    lowered = {choice.lower(): choice for choice in choices}
    if word.lower() in lowered:
        return lowered[word.lower()]
    matches = get_close_matches(word, choices, n=1, cutoff=0.6)
    return matches[0] if matches else None
