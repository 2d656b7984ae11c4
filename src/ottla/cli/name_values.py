"""`NAME=VALUE` words of the command line."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cli.failures import UsageFailed


def pairs(option: str, given: Iterable[str] | None) -> dict[str, str]:
    """The words as a mapping. Raises UsageFailed for any other word."""
    found: dict[str, str] = {}
    for word in given or ():
        name, equals, value = word.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageFailed(
                f"{option} must be NAME=VALUE, not {word!r}.", f"For example: {option} name=value"
            )
        if name in found:
            raise UsageFailed(f"{option} sets {name} twice; set it once.")
        found[name] = value.strip()
    return found
