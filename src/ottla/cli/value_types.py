"""The types of options' values, and what is said of a wrong one.

`name` in capitals is what the help calls such a value, unless an option has a metavar of its own.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final, NoReturn

import click

MAX_SHOWN: Final = 40
WHOLE: Final = re.compile(r"\s*[+-]?[0-9]{1,4000}\s*")
MAX_INT16: Final = 2**15 - 1
MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1
"""What the fields of requests hold."""
MAX_S: Final = 2_000_000
"""23 days: librdkafka's times are milliseconds of 32 bits."""


def refuse(
    value: object, allowed: str, parameter: click.Parameter | None, context: click.Context | None
) -> NoReturn:
    """Raises BadParameter: `must be a whole number, not 'x'`."""
    shown = str(value)
    if len(shown) > MAX_SHOWN:
        shown = f"{shown[:MAX_SHOWN]}…"
    quoted = shown if allowed.endswith(("more", "less")) else repr(shown)
    raise click.BadParameter(f"must be {allowed}, not {quoted}.", context, parameter)


class Number(click.ParamType[float]):
    """A number within bounds."""

    name = "number"

    def __init__(self, least: float = -MAX_INT64, most: float = MAX_INT64) -> None:
        self.least, self.most = least, most

    def parsed(self, text: str) -> float | None:
        """None if the text is no such number."""
        try:
            return float(text)
        except ValueError:
            return None

    @property
    def kind(self) -> str:
        return "a number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = self.parsed(value) if isinstance(value, str) else value
        if number is None:
            refuse(value, self.kind, param, ctx)
        if not number >= self.least:
            refuse(value, f"{self.least} or more", param, ctx)
        if not number <= self.most:
            refuse(value, f"{self.most} or less", param, ctx)
        return number


class WholeNumber(Number):
    """A whole number within bounds: a request has at most 64 bits for one."""

    name = "n"

    def __init__(self, least: int = -MAX_INT64, most: int = MAX_INT64) -> None:
        super().__init__(least, most)

    def parsed(self, text: str) -> int | None:
        return int(text) if WHOLE.fullmatch(text) else None

    @property
    def kind(self) -> str:
        return "a whole number"


class Seconds(Number):
    """A time in seconds."""

    name = "seconds"

    def __init__(self, least: float, most: float = MAX_S) -> None:
        super().__init__(least, most)


class Time(click.ParamType[int]):
    """A point in time, or an age, in ms since 1970."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from ottla.messaging.positions import parse_time

        return parse_time(option_of(param), value, int(time.time() * 1000))


class Age(click.ParamType[int]):
    """A duration such as 15m, in ms."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from ottla.messaging.positions import parse_age

        return value if isinstance(value, int) else parse_age(option_of(param), value)


class Size(click.ParamType[int]):
    """A number of bytes with or without a unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from ottla.cli.sizes import parse_size

        return value if isinstance(value, int) else parse_size(option_of(param), value)


def option_of(parameter: click.Parameter | None) -> str:
    """`--until`, for messages."""
    return max(parameter.opts, key=len) if parameter is not None else ""
