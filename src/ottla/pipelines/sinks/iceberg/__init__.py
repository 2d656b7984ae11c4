"""A table of Apache Iceberg as the target of the rows."""

from ottla.pipelines.sinks.iceberg.to_iceberg import IcebergSpec, to_iceberg

__all__ = ["IcebergSpec", "to_iceberg"]
