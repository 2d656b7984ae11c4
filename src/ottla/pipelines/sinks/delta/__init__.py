"""Delta tables."""

from ottla.pipelines.sinks.delta.maintenance import maintain
from ottla.pipelines.sinks.delta.spec import DeltaSpec
from ottla.pipelines.sinks.delta.to_delta import to_delta

__all__ = ["DeltaSpec", "maintain", "to_delta"]
