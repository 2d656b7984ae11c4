"""Takes what was typed for an option without pydantic, where it is easy to read.

typer converts every value with pydantic, whose import takes as long as the rest of a command's
start. Text stays text, a default has its type already, and a number of digits or a choice that
exists is what it looks like. The others need pydantic, as do all mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, get_args, get_origin

DONE: Final = (str, bool, int, float)
WHOLE_NUMBER: Final = re.compile("-?[0-9]{1,18}")


class AsTyped:
    """In the place of typer's conversion (`RuntimeParam`), which it asks where there is a need."""

    def __init__(self, typers: Callable[[], Any]) -> None:
        self._typers = typers

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value that the command gets. Raises typer's BadParameter."""
        annotation = param.type_descriptor.annotation
        if value is None:
            return () if is_repeatable(param) else None
        if not is_repeatable(param):
            found = easily_read(value, annotation, param)
            if found is not None:
                return found
        elif get_origin(annotation) is list:
            (kind,) = get_args(annotation)
            several = [easily_read(each, kind, param) for each in value]
            if None not in several:
                return several
        return self._typers().coerce(value, param=param, ctx=ctx)


def easily_read(value: Any, kind: Any, param: Any) -> Any:
    """The value of this type; None if it takes more to know whether it is one."""
    if type(value) is kind and (kind in DONE or isinstance(value, Enum)):
        return value
    if type(value) is not str:
        return None
    if kind is int and WHOLE_NUMBER.fullmatch(value):
        number = int(value)
        is_low = param.min is not None and number < param.min
        is_high = param.max is not None and number > param.max
        return None if is_low or is_high else number
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next((each for each in kind if each.value == value), None)
    return None


def is_repeatable(param: Any) -> bool:
    return bool(param.multiple or param.nargs == -1)


def take_text_as_it_is(param: Any) -> None:
    """Let a parameter of typer's do so, unless it has a parser of its own."""
    if param.type_descriptor.parameter_info.parser is None:
        lazily = AsTyped(param.get_runtime_param)
        param.get_runtime_param = lambda: lazily
