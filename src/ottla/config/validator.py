"""Checks of setting values, with Kafka's messages (ConfigDef.Range, ValidString, ValidList)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ottla.config.error import ConfigError, invalid_value
from ottla.config.value import Value


@dataclass(frozen=True, slots=True)
class Validator:
    """`check(name, value)` raises ConfigError; `allowed` describes the valid values in the docs."""

    allowed: str
    check: Callable[[str, Value], None]


def between(minimum: float | None, maximum: float | None = None) -> Validator:
    """Numbers from `minimum` to `maximum`, inclusive; None means no limit."""

    def check(name: str, value: Value) -> None:
        assert isinstance(value, int | float)
        if value != value or (minimum is not None and value < minimum):
            raise invalid_value(name, value, f"Value must be at least {minimum}")
        if maximum is not None and value > maximum:
            raise invalid_value(name, value, f"Value must be no more than {maximum}")

    low = "" if minimum is None else str(minimum)
    high = "" if maximum is None else str(maximum)
    return Validator(f"{low}..{high}", check)


def at_least(minimum: float) -> Validator:
    """Numbers of `minimum` or more."""
    return between(minimum)


def one_of(*allowed: str, ignore_case: bool = False) -> Validator:
    """One of the given words."""
    folded = {word.lower() for word in allowed}

    def check(name: str, value: Value) -> None:
        assert isinstance(value, str)
        if value not in allowed and not (ignore_case and value.lower() in folded):
            raise invalid_value(name, value, f"String must be one of: {', '.join(allowed)}")

    return Validator(f"one of {', '.join(allowed)}", check)


def list_of(*allowed: str, empty_allowed: bool = True) -> Validator:
    """A list of the given words (any words if none are given)."""

    def check(name: str, value: Value) -> None:
        assert isinstance(value, tuple)
        if not value and not empty_allowed:
            raise ConfigError(f"Configuration '{name}' must not be empty.")
        for member in value:
            if not member:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if allowed and member not in allowed:
                raise invalid_value(name, member, f"String must be one of: {', '.join(allowed)}")

    words = ", ".join(allowed)
    return Validator(f"any of {words}" if words else "a list", check)


def gzip_level() -> Validator:
    """A gzip level: 1 to 9, or -1 for the library's own choice (KIP-390)."""

    def check(name: str, value: Value) -> None:
        if value != -1 and not (isinstance(value, int) and 1 <= value <= 9):
            raise invalid_value(name, value, "Value must be between 1 and 9 or equal to -1")

    return Validator("1..9 or -1", check)


_HOST_AND_PORT: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]]*):(\d{1,5})\Z", re.ASCII)


def host_and_port() -> Validator:
    """HOST:PORT, an IPv6 host in brackets; an empty host means every interface."""

    def check(name: str, value: Value) -> None:
        assert isinstance(value, str)
        matched = _HOST_AND_PORT.match(value)
        if matched is None or int(matched[2]) > 65_535:
            raise invalid_value(name, value, "Expected HOST:PORT, such as 127.0.0.1:9100")

    return Validator("HOST:PORT", check)


_THROTTLED: Final = re.compile(r"\d+:\d+\Z", re.ASCII)


def throttled_replicas() -> Validator:
    """`*` alone, or pairs partition:broker (KIP-73)."""

    def check(name: str, value: Value) -> None:
        assert isinstance(value, tuple)
        if value == ("*",) or all(_THROTTLED.match(pair) for pair in value):
            return
        reason = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        raise invalid_value(name, f"[{', '.join(value)}]", reason)

    return Validator("* or partition:broker, ...", check)


def only(default: Value, reason: str) -> Validator:
    """Only the default, for features that this broker does not have."""

    def check(name: str, value: Value) -> None:
        if value != default:
            raise invalid_value(name, value, reason)

    return Validator("only the default", check)
