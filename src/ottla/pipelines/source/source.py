"""`Source`: one topic as a pipeline reads it, and how it is found again in a query's plan."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ottla.pipelines.kafka.settings import READ_COMMITTED, KafkaSettings
from ottla.pipelines.registry.framed import Framed
from ottla.pipelines.registry.settings import RegistrySettings
from ottla.pipelines.source.ddl import Kind
from ottla.pipelines.source.debezium import DEBEZIUM, SourceFormat, Truncate
from ottla.pipelines.source.fields import kind_of
from ottla.pipelines.source.parse import as_json_object, never_fails
from ottla.pipelines.source.words import UnknownFields
from ottla.pipelines.spark.jvm.plan import Node, plan_of
from ottla.registry.framing import HEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

Starting: TypeAlias = str | datetime | dict[int, int]  # str: "earliest", "latest" or "table"

# The names of the counts in the query's progress, in this order.
REJECTED: Final = "rejected"
TOMBSTONES: Final = "tombstones"
UNKNOWN_ROWS: Final = "unknown"  # rows with fields that the schema lacks
UNKNOWN_NAMES: Final = (
    "unknown_first",
    "unknown_last",
)  # the names of two of them, by the alphabet
OPTION: Final = "ottla.source"  # the reader's option that names the source by its metric


@dataclass(frozen=True)
class Source:
    """One topic as it is read; `metric` names its count of rejected rows in the progress."""

    name: str
    kafka: KafkaSettings
    schemas: dict[str, DataType | Framed]
    starting: Starting = "earliest"
    rejects: Literal["separate", "keep"] = "separate"
    tombstones: Literal["skip", "keep", "mark"] = "keep"
    max_rows: int | None = None
    registry: RegistrySettings | None = None
    unknown_fields: UnknownFields = "drop"
    source_format: SourceFormat = "plain"
    truncate: Truncate = "stop"

    @property
    def metric(self) -> str:
        types = [schema.json() for schema in self.schemas.values()]
        how = [str(self.starting), self.rejects, self.tombstones, self.max_rows]
        how += [self.unknown_fields, self.source_format, self.truncate]
        spec = json.dumps([self.kafka.bootstrap_servers, *types, *how])
        return f"ottla.{self.name}.{zlib.crc32(spec.encode()):08x}"

    @property
    def is_debezium(self) -> bool:
        """Whether the values are events of Debezium."""
        return self.source_format == DEBEZIUM

    @property
    def can_reject(self) -> bool:
        """Whether rows of this source may be missing in the frame because they do not parse."""
        return self.rejects == "separate" and not all(map(never_fails, self.schemas.values()))

    @property
    def known_fields(self) -> Kind | None:
        """The schema of a value that is a JSON object, None for all others."""
        schema = self.schemas.get("value")
        fields = None if schema is None else as_json_object(schema)
        return None if fields is None else kind_of(fields)

    @property
    def framing_bytes(self) -> int:
        """How many bytes are before a value's data."""
        return HEAD_BYTES if isinstance(self.schemas.get("value"), Framed) else 0

    @property
    def framed(self) -> dict[str, Framed]:
        """The columns that are read through a schema registry."""
        return {name: one for name, one in self.schemas.items() if isinstance(one, Framed)}

    @property
    def counts(self) -> bool:
        """Whether the query's progress counts this source's rejected rows and tombstones."""
        return self.tombstones == "skip" or not all(map(never_fails, self.schemas.values()))


def read_committed_of(sources: Iterable[Source]) -> frozenset[str]:
    """Return the topics of which these sources read no records of aborted transactions."""
    every = list(sources)
    others = {one.name for one in every if one.kafka.isolation != READ_COMMITTED}
    return frozenset(one.name for one in every if one.name not in others)


MAX_SOURCES: Final = 1_000
"""The newest sources that a process knows: a frame may be used again when its query has ended."""

# The sources of this process, by metric, the newest last.
SOURCES: Final[dict[str, Source]] = {}


def keep(source: Source) -> None:
    """Keep a source for the queries that read frames of it, at most MAX_SOURCES of all."""
    SOURCES.pop(source.metric, None)
    SOURCES[source.metric] = source
    for metric in list(SOURCES)[:-MAX_SOURCES]:
        del SOURCES[metric]


def sources_of(frame: DataFrame) -> list[tuple[int, Source]]:
    """Return the sources that a frame reads, each with its number in the query.

    Spark keeps what it knows of the source with number N in `<checkpoint>/sources/N`. It numbers
    the streaming relations of the analyzed plan from the root down, each node before its children
    and equal relations once (MicroBatchExecution.logicalPlan). Relations of other makers count.
    """
    found = []
    for number, relation in enumerate(_relations(frame)):
        source = _source(relation)
        if source is not None:
            found.append((number, source))
    return found


def topics_read(frame: DataFrame) -> set[str]:
    """Return the topics that a frame reads, also through streams of other makers.

    Of a stream that is no topic, or reads topics by a pattern, it has a text that names no topic.
    """
    found: set[str] = set()
    for number, relation in enumerate(_relations(frame)):
        source = _source(relation)
        if source is not None:
            found.add(source.name)
        elif relation.kind == "StreamingRelationV2" and relation.source == "kafka":
            names = [name.strip() for name in relation.option("subscribe").split(",")]
            found |= {*names} - {""} or {f"several topics of stream {number}", f"stream {number}"}
        else:
            found.add(f"stream {number}")
    return found


def _source(relation: Node) -> Source | None:
    is_ours = relation.kind == "StreamingRelationV2"
    return SOURCES.get(relation.option(OPTION)) if is_ours else None


def _relations(frame: DataFrame) -> list[Node]:
    relations: list[Node] = []
    plans = [plan_of(frame)]
    while plans:
        node = plans.pop()
        if node.kind in ("StreamingRelation", "StreamingRelationV2"):
            if node not in relations:
                relations.append(node)
            continue
        plans += reversed(node.children)
    return relations
