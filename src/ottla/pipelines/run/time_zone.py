"""The time zone of a session and that of the checkpoint which it continues, compared."""

from __future__ import annotations

from ottla.pipelines.checkpoint.identity import Identity
from ottla.pipelines.checkpoint.time_zone import wrong_zone, zone_not_known
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.run.specification import Specification


def check_zone(specification: Specification, identity: Identity | None) -> list[str]:
    """Refuse a checkpoint that has read times in another time zone; return what is to be said."""
    checkpoint, zone = str(specification.checkpoint), specification.time_zone
    if wrong := wrong_zone(identity, checkpoint, zone):
        raise PipelineError(wrong)
    said = zone_not_known(identity, checkpoint, zone)
    return [said] if said else []
