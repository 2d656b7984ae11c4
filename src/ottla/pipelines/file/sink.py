"""`[sink]`: a Delta table, files, a table of a database, or a topic. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.settings import KafkaSettings, split_producer
from ottla.pipelines.kafka.topic_name import wrong_name
from ottla.pipelines.sinks.files.sink import FORMATS
from ottla.pipelines.sinks.postgresql.table import read_table_name
from ottla.pipelines.spec.fields import Fields
from ottla.pipelines.spec.option import options_of
from ottla.pipelines.spec.read_options import read_options
from ottla.pipelines.spec.servers import read_servers
from ottla.pipelines.spec.sink import (
    DELTA,
    SINKS,
    DatabaseSpec,
    DeltaSpec,
    FilesSpec,
    SinkSpec,
    TopicSpec,
)
from ottla.pipelines.target.far_ahead import read_length_s

_TABLE: Final = re.compile(r"[A-Za-z_]\w*(\.\w+){0,2}")
_FOR_KEYS: Final = ("order_by", "history", "deletes", "max_ahead")


def read_sink(
    fields: Fields,
    source: KafkaSettings | None,
    path: Callable[[str], str],
    elsewhere: dict[str, str],
) -> SinkSpec:
    """Return the sink. `source` is how the pipeline reaches the topic that it reads.

    `path` makes a path of the file one of the machine; `elsewhere` has the fields of other tables.
    No problem quotes a password.
    """
    kind = _kind_of(fields)
    own = options_of(kind)
    for name in {name: None for other in SINKS for name in options_of(other) if name not in own}:
        if fields.has(name) and not (kind is DeltaSpec and name == "format"):
            fields.problem(name, kind.others)
            fields.value(name)
    given = read_options(fields, kind, path)
    spec: SinkSpec
    if kind is TopicSpec:
        spec = _topic(fields, given, source)
    elif kind is DatabaseSpec:
        spec = _database(fields, given)
    else:
        spec = _lake(fields, kind, given, path)
    if not getattr(spec, "keys", ()):
        for name in _FOR_KEYS:
            if name in own and fields.has(name):
                fields.problem(name, "is for a table with keys, such as keys = ['id']")
    if ahead := given.get("max_ahead"):
        _check(fields, "max_ahead", lambda: read_length_s(ahead))
    fields.end(elsewhere)
    return spec


def _kind_of(fields: Fields) -> type[SinkSpec]:
    if fields.has("topic"):
        return TopicSpec
    if fields.has("url"):
        return DatabaseSpec
    return DeltaSpec if fields.choice("format", (DELTA, *FORMATS), DELTA) == DELTA else FilesSpec


def _lake(
    fields: Fields, kind: type[SinkSpec], given: dict[str, Any], path: Callable[[str], str]
) -> SinkSpec:
    target = given["target"]
    is_path = "/" in target
    if target and not is_path:
        if kind is FilesSpec:
            fields.problem("target", f"{target!r}: files need a path with a slash, './{target}'")
        elif not _TABLE.fullmatch(target):
            fields.problem(
                "target",
                f"{target!r}: write a path with a slash, such as './flights', or a table's name, "
                "such as 'lake.flights'",
            )
    return kind(**given | {"target": path(target) if is_path else target})


def _database(fields: Fields, given: dict[str, Any]) -> DatabaseSpec:
    spec = DatabaseSpec(**given)
    if spec.target:
        _check(fields, "target", lambda: read_table_name(spec.target))
    if spec.url:
        _check(fields, "url", lambda: spec.database)
    return spec


def _topic(fields: Fields, given: dict[str, Any], source: KafkaSettings | None) -> TopicSpec:
    """Without `bootstrap_servers` both topics are on one cluster, and `[source.kafka]` holds for
    both.
    """
    if given["topic"] and (wrong := wrong_name(given["topic"])):
        fields.problem("topic", wrong)
    try:
        settings, producer = split_producer(dict(fields.settings("kafka")))
    except PipelineError as error:
        fields.problem("kafka", str(error))
        settings, producer = {}, {}
    kafka = read_servers(fields, settings, source)
    return TopicSpec(**given, kafka=kafka or KafkaSettings(""), producer=tuple(producer.items()))


def _check(fields: Fields, name: str, read: Callable[[], object]) -> None:
    try:
        read()
    except PipelineError as error:
        message = str(error)
        about = "settings" if message.startswith("settings") else name
        fields.problem(about, message.removeprefix(f"{about}: ").removeprefix(f"{about}="))
