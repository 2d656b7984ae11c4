"""Tables of PostgreSQL."""

from ottla.pipelines.sinks.postgresql.spec import DatabaseSpec
from ottla.pipelines.sinks.postgresql.to_postgresql import to_jdbc, to_postgresql

__all__ = ["DatabaseSpec", "to_jdbc", "to_postgresql"]
