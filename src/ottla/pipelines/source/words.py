"""What is said of values that a parser would change or leave out. Pure."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

UnknownFields: TypeAlias = Literal["drop", "keep", "reject"]

UNKNOWN_FIELDS: Final[tuple[UnknownFields, ...]] = ("drop", "keep", "reject")
MAX_SHOWN: Final = 5
"""So many unknown fields are named in a reason."""

DAY: Final = "that begins with a date, yyyy-mm-dd"
ALONE: Final = "alone, yyyy-mm-dd"
SECONDS: Final = "does not fit a timestamp: a number is seconds since 1970, not microseconds"
TOO_LARGE: Final = "does not fit a floating-point number"
TINY: Final = "does not fit a tinyint"
COMMA: Final = "without a comma"
ROUNDED: Final = "without rounding"
UNKNOWN: Final = "has fields that are not in the schema"
HALF_PAIR: Final = "has half of a surrogate pair, such as \\ud83d alone, which is no character"
