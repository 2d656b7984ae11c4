"""Takes what was typed for an option as it is, where that is what the command wants: text.

typer converts every value with pydantic, whose import takes as long as the rest of a command's
start. Text stays text, and a default has its type already; only the others need pydantic.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final

DONE: Final = (str, bool, int, float)


class AsTyped:
    """In the place of typer's conversion (`RuntimeParam`), which it asks where there is a need."""

    def __init__(self, typers: Callable[[], Any]) -> None:
        self._typers = typers

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value that the command gets. Raises typer's BadParameter."""
        annotation = param.type_descriptor.annotation
        if value is None:
            return () if is_repeatable(param) else None
        if is_repeatable(param):
            if annotation == list[str] and all(has_type(each, str) for each in value):
                return list(value)
        elif has_type(value, annotation):
            return value
        return self._typers().coerce(value, param=param, ctx=ctx)


def has_type(value: Any, annotation: Any) -> bool:
    """Whether the value is of this type, and no conversion would check more than that."""
    return type(value) is annotation and (annotation in DONE or isinstance(value, Enum))


def is_repeatable(param: Any) -> bool:
    return bool(param.multiple or param.nargs == -1)


def take_text_as_it_is(param: Any) -> None:
    """Let a parameter of typer's do so, unless it has a parser of its own."""
    if param.type_descriptor.parameter_info.parser is None:
        lazily = AsTyped(param.get_runtime_param)
        param.get_runtime_param = lambda: lazily
