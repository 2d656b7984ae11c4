"""`--filter REGEX`: which topics or groups are listed, by their names."""

from __future__ import annotations

from collections.abc import Callable

from ottla.cli.failures import UsageFailed

Matches = Callable[[str], bool]


def name_filter(pattern: str | None) -> Matches:
    """Whether a name has a part that matches; every name without a pattern. Raises UsageFailed."""
    if pattern is None:
        return lambda _: True
    # Imported late: few commands need it.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        raise UsageFailed(
            f"--filter: {pattern!r} is not a regular expression: {reason}.",
            "For example: --filter '^orders'",
        ) from None
    return lambda name: compiled.search(name) is not None
