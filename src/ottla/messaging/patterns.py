"""Regular expressions of users, in RE2's syntax: none takes longer than linear time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.wording.errors import ReportedError


class PatternError(ReportedError):
    """It is not a regular expression."""

    is_usage = True


def compiled(option: str, pattern: str, hint: str, *, of_bytes: bool = False) -> Any:
    """The pattern with its `search`. `of_bytes`: for bytes, also those that are not UTF-8.

    Raises PatternError with the hint.
    """
    # Imported late: few commands need it.
    import re2

    options = re2.Options()
    options.log_errors = False
    if of_bytes:
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        return re2.compile(pattern.encode() if of_bytes else pattern, options=options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        raise PatternError(
            f"{option}: {pattern!r} is not a regular expression: {reason}.", hint
        ) from None


def name_filter(pattern: str | None) -> Callable[[str], bool]:
    """`--filter`: whether a name has a part that matches; every name without a pattern.

    Raises PatternError.
    """
    if pattern is None:
        return lambda _: True
    found = compiled("--filter", pattern, "For example: --filter '^orders'")
    return lambda name: found.search(name) is not None
