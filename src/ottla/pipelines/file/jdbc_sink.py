"""`[sink]` with the field `url`: a table of a database. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.fields import Fields
from ottla.pipelines.file.max_ahead import read_max_ahead
from ottla.pipelines.sinks.jdbc_settings import EXAMPLE, read_database
from ottla.pipelines.sinks.postgres_table import read_table_name
from ottla.pipelines.spec.pipeline import SinkSpec

_OF_FOLDERS: Final = ("partition_by", "format", "history", "compact_after", "deletion_vectors")
T = TypeVar("T")


def read_jdbc_sink(fields: Fields) -> SinkSpec:
    """Return the sink; the password stays out of every problem."""
    target = fields.text("target", "lake.flights", required=True) or ""
    if target:
        _checked(fields, "target", lambda: read_table_name(target))
    url = fields.text("url", EXAMPLE, required=True)
    user, password = fields.text("user", "app"), _password(fields)
    settings = dict(fields.settings("settings"))
    database = None
    if url is not None:
        database = _checked(fields, "url", lambda: read_database(url, user, password, settings))
    for name in _OF_FOLDERS:
        if fields.value(name) is not None:
            fields.problem(name, "is not for a table of a database: leave it out")
    spec = SinkSpec(
        target=target,
        schema_changes=fields.choice("schema_changes", ("refuse", "add"), "refuse") or "",
        keys=fields.texts("keys", "'id'"),
        order_by=fields.text("order_by", "timestamp"),
        deletes=fields.choice("deletes", ("remove", "mark"), "remove") or "",
        max_ahead=read_max_ahead(fields),
        database=database,
    )
    if not spec.keys:
        for name in ("order_by", "deletes", "max_ahead"):
            if fields.has(name):
                fields.problem(name, "is for a table with keys, such as keys = ['id']")
    fields.end()
    return spec


def _password(fields: Fields) -> str | None:
    value = fields.value("password")
    if value is None or isinstance(value, str):
        return value
    fields.problem("password", "is no text; allowed: text, such as '${LAKE_PASSWORD}'")
    return None


def _checked(fields: Fields, name: str, read: Callable[[], T]) -> T | None:
    try:
        return read()
    except PipelineError as error:
        message = str(error)
        about = "settings" if message.startswith("settings") else name
        fields.problem(about, message.removeprefix(f"{about}: "))
        return None
