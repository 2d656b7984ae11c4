"""Types of setting values: how text is parsed, and how values are shown as text.

Follows Kafka's ConfigDef: numbers have Java's ranges, lists are separated by commas, booleans are
`true` and `false` in any case, and surrounding blanks are ignored.
"""

from __future__ import annotations

import enum
import re
from typing import Final

from ottla.config.error import invalid_value

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
DOUBLE_MAX: Final = 1.7976931348623157e308

_NUMBER = re.compile(r"[+-]?\d+\Z", re.ASCII)
_COMMA = re.compile(r"\s*,\s*")


class ConfigType(enum.IntEnum):
    """Types of settings, numbered as in DescribeConfigs responses (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}

Value = bool | int | float | str | tuple[str, ...] | None


def parse_value(name: str, kind: ConfigType, text: str) -> Value:
    """Parse `text` as a value of the type. Raises ConfigError if it is invalid."""
    trimmed = text.strip()
    if kind is ConfigType.BOOLEAN:
        lowered = trimmed.lower()
        if lowered not in ("true", "false"):
            raise invalid_value(name, text, "Expected value to be either true or false")
        return lowered == "true"
    if kind in _BITS:
        return _parse_integer(name, kind, trimmed)
    if kind is ConfigType.DOUBLE:
        try:
            return float(trimmed)
        except ValueError:
            raise invalid_value(name, text, "Not a number of type DOUBLE") from None
    if kind is ConfigType.LIST:
        return parse_list(trimmed)
    if kind is ConfigType.PASSWORD:
        return text
    return trimmed


def parse_list(text: str) -> tuple[str, ...]:
    """The words between commas. Kafka drops duplicates (ConfigDef.parseValue)."""
    trimmed = text.strip()
    return tuple(dict.fromkeys(_COMMA.split(trimmed))) if trimmed else ()


def _parse_integer(name: str, kind: ConfigType, text: str) -> int:
    limit = 2 ** (_BITS[kind] - 1)
    # The length is checked first: int() of a million digits is slow and always out of range.
    if not _NUMBER.match(text) or len(text) > 25 or not -limit <= int(text) < limit:
        raise invalid_value(name, text[:40], f"Not a number of type {kind.name}")
    return int(text)


def value_text(value: Value) -> str | None:
    """A value as Kafka shows it; None stays None (no value)."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return "1.7976931348623157E308" if value == DOUBLE_MAX else repr(value)
    return str(value)
