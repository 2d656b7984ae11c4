"""Tables of PostgreSQL."""

from ottla.pipelines.sinks.postgresql.to_postgresql import DatabaseSpec, to_jdbc, to_postgresql

__all__ = ["DatabaseSpec", "to_jdbc", "to_postgresql"]
