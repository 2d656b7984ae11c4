"""`[sink]`: the fields of the sink that a file chooses (`sinks.registered`). Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.sinks.registered import SINKS
from ottla.pipelines.spec.fields import Fields
from ottla.pipelines.spec.option import options_of
from ottla.pipelines.spec.read_options import read_options
from ottla.pipelines.spec.sink import Reading, SinkSpec, check
from ottla.pipelines.target.far_ahead import read_length_s

_FOR_KEYS: Final = (
    *("order_by", "history", "track", "ignore_nulls", "deletes", "max_ahead"),
    *("apply_as_deletes", "apply_as_truncates", "mode"),
)


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
        if fields.has(name) and not (name == "format" and kind.formats):
            fields.problem(name, kind.others)
            fields.value(name)
    given = read_options(fields, kind, path)
    spec = kind.read(fields, given, Reading(path, source))
    if not getattr(spec, "keys", ()):
        for name in _FOR_KEYS:
            if name in own and fields.has(name):
                fields.problem(name, "is for a table with keys, such as keys = ['id']")
    if ahead := given.get("max_ahead"):
        check(fields, "max_ahead", lambda: read_length_s(ahead))
    fields.end(elsewhere)
    return spec


def _kind_of(fields: Fields) -> type[SinkSpec]:
    """Return the kind that a file marks. Of two the later one in the list is it."""
    for kind in reversed(SINKS):
        if kind.marked_by and fields.has(kind.marked_by):
            return kind
    formats = {name: kind for kind in SINKS for name in kind.formats}
    default = next(iter(formats))
    return formats[fields.choice("format", tuple(formats), default) or default]
