"""The time zone in which a query reads times that name none, such as "2026-07-01 12:00:00".

Spark takes that of the session, and `date` or `hour` of a time depend on it as well. A checkpoint
that goes on under another zone would give the records of one topic two meanings. Pure.
"""

from __future__ import annotations

from typing import Final

from ottla.pipelines.checkpoint.identity import Identity
from ottla.pipelines.spark.defaults import TIME_ZONE

UTC: Final = "UTC"
_SAME_AS_UTC: Final = frozenset(
    ("UTC", "Z", "GMT", "UCT", "Zulu", "Universal", "+00:00", "GMT0", "Greenwich")
)


def wrong_zone(identity: Identity | None, checkpoint: str, zone: str) -> str | None:
    """Return why a checkpoint does not continue in the zone of the session, None where it does."""
    if identity is None or identity.time_zone is None:
        return None
    if _plain(identity.time_zone) == _plain(zone):
        return None
    return (
        f"The checkpoint {checkpoint} has read times without a zone as {identity.time_zone}, and "
        f"this session reads them as {zone}. Start it with conf={{{TIME_ZONE!r}: "
        f"{identity.time_zone!r}}}, or use a new checkpoint and a new table"
    )


def zone_not_known(identity: Identity | None, checkpoint: str, zone: str) -> str | None:
    """Return what to say of a checkpoint that did not keep its zone, None where it did."""
    if identity is None or identity.time_zone is not None:
        return None
    return (
        f"The checkpoint {checkpoint} does not say in which time zone it has read times without "
        f"one, which was the machine's by default. From now on it is {zone}"
    )


def _plain(zone: str) -> str:
    return UTC if zone.removeprefix("Etc/") in _SAME_AS_UTC else zone
