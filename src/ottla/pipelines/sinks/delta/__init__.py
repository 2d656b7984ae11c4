"""Delta tables."""

from ottla.pipelines.sinks.delta.maintenance import maintain
from ottla.pipelines.sinks.delta.to_delta import DeltaSpec, to_delta

__all__ = ["DeltaSpec", "maintain", "to_delta"]
