"""What is wrong with the value of an option, in our words.

typer checks values with pydantic, whose messages are about Python's types and leave out what was
given: "Input should be a valid integer, unable to parse string as an integer".
"""

from __future__ import annotations

from typing import Any, Final

MAX_SHOWN: Final = 40
NUMBERS: Final = {"int": "a whole number", "float": "a number"}


def what_is_wrong(error: BaseException) -> str | None:
    """`must be a whole number, not 'x'`; None if pydantic did not find the mistake.

    `error` is typer's; its cause is pydantic's ValidationError.
    """
    details = getattr(error.__cause__, "errors", None)
    if details is None:
        return None
    first: dict[str, Any] = details()[0]
    kind, given, limits = first["type"], str(first["input"]), first.get("ctx", {})
    shown = given if len(given) <= MAX_SHOWN else f"{given[:MAX_SHOWN]}…"
    if kind == "greater_than_equal":
        return f"must be {limits['ge']:g} or more, not {shown}"
    if kind == "less_than_equal":
        return f"must be {limits['le']:g} or less, not {shown}"
    if kind == "value_error":  # of typer's own check of a choice
        return str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    number = NUMBERS.get(kind.partition("_")[0])
    return f"must be {number}, not {shown!r}" if number else None
