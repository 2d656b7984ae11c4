"""Which broker settings are the default, the least and the greatest value of a group's settings.

Kafka has them in GroupConfig (ALL_GROUP_CONFIG_SYNONYMS, validateValues), GroupCoordinatorConfig
and ShareGroupConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.config.error import ConfigError
from ottla.config.setting import Settings


class Bounds(NamedTuple):
    """Names of broker settings."""

    default: str
    least: str | None
    most: str | None


def _between(kind: str, *names: str) -> dict[str, Bounds]:
    return {
        f"{kind}.{name}": Bounds(
            f"group.{kind}.{name}", f"group.{kind}.min.{name}", f"group.{kind}.max.{name}"
        )
        for name in names
    }


_TIMES: Final = ("heartbeat.interval.ms", "session.timeout.ms")

GROUP_BOUNDS: Final[Mapping[str, Bounds]] = {
    **_between("consumer", *_TIMES, "assignment.interval.ms"),
    **_between(
        "share",
        *_TIMES,
        "record.lock.duration.ms",
        "delivery.count.limit",
        "partition.max.record.locks",
        "assignment.interval.ms",
    ),
    **_between("streams", *_TIMES),
    "streams.num.standby.replicas": Bounds(
        "group.streams.num.standby.replicas", None, "group.streams.max.standby.replicas"
    ),
    **_between("streams", "assignment.interval.ms"),
    "streams.initial.rebalance.delay.ms": Bounds(
        "group.streams.initial.rebalance.delay.ms", None, None
    ),
    "streams.task.offset.interval.ms": Bounds(
        "group.streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms", None
    ),
    "streams.acceptable.recovery.lag": Bounds("group.streams.acceptable.recovery.lag", None, None),
}
"""By the name of a group's setting, in the order in which Kafka checks them. Those that are not in
here have no broker setting.
"""
ONLY_VALUES: Final[Mapping[str, tuple[str, str]]] = {
    "streams.assignor.name": ("group.streams.assignors", "sticky"),
    "streams.rack.aware.assignment.tags": ("group.streams.rack.aware.assignment.tags", ""),
}
"""By the name of a group's setting: the broker setting that Kafka has for it, and the only value of
that one here, where it is no setting (`unneeded`).
"""
GROUP_KINDS: Final = ("consumer", "share", "streams")
"""Each has a session timeout, which must be above its heartbeat interval."""


def number(settings: Settings, name: str) -> int:
    """The value of a setting that is a whole number."""
    value = settings.value(name)
    assert isinstance(value, int)
    return value


def check_defaults(broker: Settings) -> None:
    """Raise ConfigError unless each default is within its bounds, as in GroupCoordinatorConfig."""
    for default, least, most in GROUP_BOUNDS.values():
        value = number(broker, default)
        low = value if least is None else number(broker, least)
        high = value if most is None else number(broker, most)
        if low <= value <= high:
            continue
        limits = [f"at least {least} ({low})"] if least else []
        limits += [f"at most {most} ({high})"] if most else []
        raise ConfigError(f"{default} ({value}) must be {' and '.join(limits)}")
    for kind in GROUP_KINDS:
        heartbeat, session = (f"group.{kind}.{name}" for name in _TIMES)
        if number(broker, heartbeat) >= number(broker, session):
            raise ConfigError(
                f"{heartbeat} ({number(broker, heartbeat)}) must be below {session} "
                f"({number(broker, session)})"
            )
