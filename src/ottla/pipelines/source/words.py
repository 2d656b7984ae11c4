"""What is said of values that a parser would change. Pure."""

from __future__ import annotations

from typing import Final

DAY: Final = "that begins with a date, yyyy-mm-dd"
ALONE: Final = "alone, yyyy-mm-dd"
SECONDS: Final = "does not fit a timestamp: a number is seconds since 1970, not microseconds"
TOO_LARGE: Final = "does not fit a floating-point number"
TINY: Final = "does not fit a tinyint"
COMMA: Final = "without a comma"
ROUNDED: Final = "without rounding"
