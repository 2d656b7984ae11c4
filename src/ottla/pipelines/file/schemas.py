"""Schemas and names of columns of a pipeline file, checked before Spark starts. Pure.

What only Spark can judge is left to it.
"""

from __future__ import annotations

from ottla.pipelines.registry.registered import is_wanted
from ottla.pipelines.source.ddl import DdlError, read_ddl
from ottla.pipelines.source.debezium import ABOUT, DEBEZIUM, TRUNCATES
from ottla.pipelines.spec.fields import Fields, listed, nearest
from ottla.pipelines.spec.pipeline import SourceSpec, TransformSpec
from ottla.pipelines.spec.sink import SinkSpec


def check_schema(fields: Fields, name: str, schema: str, *, of_table: bool = False) -> None:
    """Add a problem for a schema that is no DDL, or none of a key, a value or (`of_table`) a table.

    `source.parse.read_schema` says the same of a schema that is given in Python.
    """
    try:
        kind = read_ddl(schema)
    except DdlError as error:
        how = "" if of_table else ", or one type such as 'string' or 'binary'"
        end = "" if str(error).endswith("?") else "."
        fields.problem(
            name,
            f"{schema!r} is no schema: {error}{end} Write fields such as 'carrier STRING, delay "
            f"DOUBLE'{how}",
        )
        return
    if kind is None or of_table:
        return
    if kind.name in ("array", "map"):
        fields.problem(
            name,
            f"write an object's fields or one plain type, not {kind.text()}: take the value as "
            "'string' and parse it with from_json",
        )


def check_unknown_fields(fields: Fields, source: SourceSpec) -> None:
    """Add a problem where a value that is no JSON object is to have unknown fields.

    What a schema registry holds is not known here.
    """
    if source.unknown_fields == "drop" or source.registry is not None:
        return
    try:
        kind = read_ddl("string" if source.schema is None else source.schema)
    except DdlError:
        return  # said already
    names = [field.name.lower() for field in kind.fields] if kind is not None else []
    if kind is not None and kind.name != "struct":
        fields.problem(
            "unknown_fields",
            f"{source.unknown_fields!r} is for a value that is a JSON object: give its fields as "
            "schema = 'carrier STRING, delay DOUBLE'",
        )
    elif source.unknown_fields == "keep" and "_unknown" in names:
        fields.problem(
            "unknown_fields",
            "'keep' keeps them in the field _unknown, which the schema has: give that one another "
            "name",
        )


def check_format(fields: Fields, source: SourceSpec) -> None:
    """Add a problem where events of Debezium are to be what they cannot be.

    `source.topic` says the same of arguments that are given in Python.
    """
    if source.source_format != DEBEZIUM:
        if source.truncate != TRUNCATES[0]:
            fields.problem("truncate", "is for source_format = 'debezium': leave it out")
        return
    # By a schema of a registry the event itself says which columns there are.
    is_registered = source.registry is not None and (
        source.schema is None or is_wanted(source.schema)
    )
    try:
        kind = None if is_registered else read_ddl(source.schema or "string")
    except DdlError:
        return  # said already
    if kind is not None and kind.name != "struct":
        fields.problem(
            "schema",
            "source_format = 'debezium' needs the columns of the database's table here, such as "
            "'id INT NOT NULL, name STRING', or the registry of its events",
        )
    for name, given, taken in (
        ("rejects", source.rejects, "separate"),
        ("tombstones", source.tombstones, None),
    ):
        if given != taken:
            fields.problem(name, "is not for source_format = 'debezium': leave it out")
    if source.unknown_fields == "keep":
        fields.problem("unknown_fields", "'keep' is not for source_format = 'debezium'")


def check_columns(
    fields: Fields, source: SourceSpec, transform: TransformSpec | None, sink: SinkSpec
) -> None:
    """Add a problem for a name that is no column, where nothing changes the topic's columns.

    Spark ignores the case of names; with SQL or a function it alone knows the columns.
    """
    if transform is None or transform.sql is not None or transform.function is not None:
        return
    columns = ["key", "value", "partition", "offset", "timestamp", "headers"]
    if source.source_format == DEBEZIUM:
        columns += ["before", *ABOUT, "tombstone"]
        columns += ["truncation"] if source.truncate == "apply" else []
    if source.tombstones == "mark":
        columns.append("tombstone")
    if source.rejects == "keep":
        columns.append("reason")
    keys = getattr(sink, "keys", ())
    given = [
        *(("sink.keys", name) for name in keys),
        *(("sink.partition_by", name) for name in getattr(sink, "partition_by", ())),
        *(("sink.order_by", name) for name in (getattr(sink, "order_by", None),) if name and keys),
    ]
    for field, name in given:
        # A dot reads a field of a column, and backticks quote a name.
        if name.lower() in columns or "." in name or "`" in name:
            continue
        near = nearest(name, columns)
        hint = f"; did you mean {near!r}?" if near else ""
        fields.problem(
            field,
            f"{name!r} is no column{hint or '.'} Without transform.sql the columns are: "
            f"{listed(columns)}. The fields of a JSON object need sql = 'SELECT value.*, ...'",
        )
