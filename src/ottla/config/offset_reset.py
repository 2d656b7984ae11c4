"""share.auto.offset.reset: where a share group begins to read a partition (KIP-932).

    earliest
    latest
    by_duration:PnDTnHnMn.nS    as long ago as this duration of ISO 8601 says (KIP-1106)

Kafka's counterparts are ShareGroupAutoOffsetResetStrategy and java.time.Duration.parse.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.config.error import ConfigError, invalid_value
from ottla.config.validator import Validator
from ottla.config.value import LONG_MAX, Value

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
BY_DURATION: Final = "by_duration"
_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?\d{1,19})D)?"
    r"(T(?:([-+]?\d{1,19})H)?(?:([-+]?\d{1,19})M)?(?:([-+]?\d{1,19})(?:[.,](\d{0,9}))?S)?)?\Z",
    re.IGNORECASE | re.ASCII,
)


class OffsetReset(NamedTuple):
    """Where to begin."""

    way: str
    """EARLIEST, LATEST or BY_DURATION."""
    duration_ms: int = 0
    """Before now, of BY_DURATION."""


def parse_offset_reset(text: str) -> OffsetReset:
    """Raises ConfigError, which does not name the setting."""
    if text in (EARLIEST, LATEST):
        return OffsetReset(text)
    way, colon, duration = text.partition(":")
    if way == BY_DURATION and colon:
        return OffsetReset(BY_DURATION, duration_ms(duration))
    raise ConfigError(f"{text!r} is none of {EARLIEST}, {LATEST}, {BY_DURATION}:PnDTnHnMn.nS")


def duration_ms(text: str) -> int:
    """A duration of ISO 8601, as Java reads it, in whole milliseconds. Raises ConfigError: negative
    ones are not allowed.
    """
    matched = _DURATION.match(text)
    # "P" and "PT" alone are no durations.
    if matched is None or not any(matched.group(2, 4, 5, 6)) or matched[3] in ("T", "t"):
        raise ConfigError(f"{text!r} is not a duration such as PT1H30M")
    days, hours, minutes, seconds = (int(each or 0) for each in matched.group(2, 4, 5, 6))
    fraction_ns = int((matched[7] or "").ljust(9, "0"))
    if (matched[6] or "").startswith("-"):
        fraction_ns = -fraction_ns
    total_ns = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    total_ns = total_ns * 1_000_000_000 + fraction_ns
    if matched[1] == "-":
        total_ns = -total_ns
    if not 0 <= total_ns // 1_000_000 <= LONG_MAX:
        raise ConfigError(f"{text!r} is negative or too long")
    return total_ns // 1_000_000


def offset_reset() -> Validator:
    """What `parse_offset_reset` reads; with Kafka's message."""

    def check(name: str, value: Value) -> None:
        assert isinstance(value, str)
        try:
            parse_offset_reset(value)
        except ConfigError:
            raise invalid_value(
                name,
                value,
                f"Invalid value `{value}` for configuration {name}. The value must be either "
                "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
            ) from None

    return Validator(f"{EARLIEST}, {LATEST} or {BY_DURATION}:PnDTnHnMn.nS", check)
