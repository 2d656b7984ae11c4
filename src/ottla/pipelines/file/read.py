"""From a pipeline file's text to specifications; every problem of the file at once. Pure.

A TOML file has `[source]`, `[transform]`, `[sink]`, `[delivery]` and `[spark]`, or several
`[[pipeline]]` with these tables below each (`[pipeline.source]`), `[spark]` being the session's and
so the file's. A Python file has the same tables as `PIPELINE = {...}`. Paths are relative to the
folder of the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.python_source import DEFAULT_FUNCTION, PythonSource, read_python
from ottla.pipelines.file.schemas import (
    check_columns,
    check_format,
    check_schema,
    check_unknown_fields,
)
from ottla.pipelines.file.sink import read_sink
from ottla.pipelines.file.variables import replace_variables
from ottla.pipelines.kafka.settings import KafkaSettings
from ottla.pipelines.kafka.topic_name import wrong_name
from ottla.pipelines.registry.registered import is_wanted
from ottla.pipelines.registry.settings import RegistrySettings, read_registry
from ottla.pipelines.sinks.registered import SINKS
from ottla.pipelines.spec.fields import Fields, nearest
from ottla.pipelines.spec.pipeline import (
    DeliverySpec,
    FileSpec,
    FunctionSpec,
    PipelineSpec,
    SourceSpec,
    SparkSpec,
    TableSpec,
    TransformSpec,
)
from ottla.pipelines.spec.problem import FileError, Problem
from ottla.pipelines.spec.read_options import read_options, tables_of
from ottla.pipelines.spec.servers import read_servers

MAX_FILE_BYTES: Final = 1_000_000
MAX_PIPELINES: Final = 100

TABLES: Final = ("source", "transform", "sink", "delivery")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INTERVAL: Final = re.compile(r"\d+ (millisecond|second|minute|hour|day)s?")
_FUNCTION: Final = re.compile(r"(?:(.+\.py):)?([A-Za-z_][A-Za-z0-9_]*)")
_ELSEWHERE: Final = {
    **tables_of(
        {
            "sink": SINKS,
            "transform": (TransformSpec,),
            "delivery": (DeliverySpec,),
            "spark": (SparkSpec,),
            "source": (SourceSpec,),
        }
    ),
    "bootstrap_servers": "[source]",
}
"""In which table a field belongs that was found in another."""


def read_text(file: Path, text: str, environ: Mapping[str, str]) -> FileSpec:
    """Return the pipelines of a file from its text. Raises FileError with all its problems."""
    problems: list[Problem] = []
    python: PythonSource | None = None
    if file.suffix == ".py":
        found = read_python(text)
        if isinstance(found, Problem):
            raise FileError(file.name, [found])
        python, document = found, found.document
    else:
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise FileError(file.name, [Problem("", f"is not TOML: {error}")]) from error
    unset: list[Problem] = []
    document = replace_variables(document, environ, "", unset)
    spec = _File(file, python, problems).read(document)
    # A field that lacks a variable is no further problem.
    lacking = tuple(problem.where for problem in unset)
    problems = unset + [
        problem
        for problem in problems
        if not any(
            where == problem.where or where.startswith(f"{problem.where}.") for where in lacking
        )
    ]
    if problems or spec is None:
        raise FileError(file.name, problems)
    return spec


def read_file(file: Path, environ: Mapping[str, str]) -> FileSpec:
    """Read a file and return its pipelines. Raises FileError."""
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise FileError(file.name, [Problem("", f"is larger than {MAX_FILE_BYTES} bytes")])
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(file.name, [Problem("", f"is not UTF-8 text: {error}")]) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise FileError(file.name, [Problem("", f"cannot be read: {reason}")]) from error
    return read_text(file.absolute(), text, environ)


class _File:
    """Reads one document; collects the problems."""

    def __init__(self, file: Path, python: PythonSource | None, problems: list[Problem]) -> None:
        self.file = file
        self.python = python
        self.problems = problems

    def read(self, document: dict[str, Any]) -> FileSpec | None:
        top = Fields(document, "", self.problems)
        spark = self._spark(top.table("spark"))
        if not top.has("pipeline"):
            one = self._pipeline(top, self.file.stem)
            return None if one is None else FileSpec(self.file, (one,), spark)
        listed = top.value("pipeline")
        top.end(dict.fromkeys((*TABLES, "name"), "each [[pipeline]]"))
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            top.problem("pipeline", "write [[pipeline]], once for each pipeline")
            return None
        if not 0 < len(listed) <= MAX_PIPELINES:
            top.problem("pipeline", f"{len(listed)} pipelines; allowed: 1 to {MAX_PIPELINES}")
            return None
        read = [
            self._pipeline(Fields(one, f"pipeline[{number}]", self.problems), None)
            for number, one in enumerate(listed)
        ]
        found = tuple(one for one in read if one is not None)
        self._check_apart(found)
        return FileSpec(self.file, found, spark)

    def _check_apart(self, pipelines: tuple[PipelineSpec, ...]) -> None:
        """Names, groups, checkpoints and targets are one pipeline's alone."""
        for what, values in (
            ("name", [one.name for one in pipelines]),
            ("delivery.group", [one.delivery.group for one in pipelines]),
            ("delivery.checkpoint", [one.delivery.checkpoint for one in pipelines]),
        ):
            for value in sorted({value for value in values if values.count(value) > 1}):
                self.problems.append(
                    Problem(what, f"{value!r} is given to several pipelines; each needs its own")
                )

    def _pipeline(self, fields: Fields, default_name: str | None) -> PipelineSpec | None:
        before = len(self.problems)
        name = fields.text("name", "flights", required=default_name is None) or default_name or ""
        if name and not _NAME.fullmatch(name):
            fields.problem("name", f"{name!r} is no name; allowed: letters, digits, '.', '_', '-'")
        source = self._source(fields.table("source", required=True), fields.has("source"))
        topic = source.topic if source else ""
        transform = self._transform(fields.table("transform"), topic)
        sink_fields = fields.table("sink", required=True)
        sink = None
        if fields.has("sink"):
            kafka = source.kafka if source else KafkaSettings("")
            sink = read_sink(sink_fields, kafka, self._path, _ELSEWHERE)
        delivery = self._delivery(
            fields.table("delivery", required=True), fields.has("delivery"), name
        )
        fields.end(_ELSEWHERE)
        if source and sink:
            check_columns(fields, source, transform, sink)
        for field in ("max_rejects", "dead_letters"):
            if sink and not sink.keeps_rejects and getattr(delivery, field, None) is not None:
                fields.problem(
                    f"delivery.{field}",
                    "is for tables: a topic has no rejected rows beside it. Leave it out",
                )
        is_kept = delivery is not None and delivery.expect and delivery.on_unexpected == "reject"
        if is_kept and sink and not sink.keeps_rejects:
            fields.problem(
                "delivery.on_unexpected",
                "a topic keeps no rejected rows beside it: write 'drop' or 'stop'",
            )
        if len(self.problems) > before or not (source and sink and delivery):
            return None
        return PipelineSpec(name, source, transform, sink, delivery)

    def _source(self, fields: Fields, is_there: bool) -> SourceSpec | None:
        if not is_there:
            return None
        given = read_options(fields, SourceSpec, self._path)
        if given["topic"] and (wrong := wrong_name(given["topic"])):
            fields.problem("topic", wrong)
        spec = SourceSpec(
            **given,
            kafka=read_servers(fields, dict(fields.settings("kafka"))) or KafkaSettings(""),
            starting=self._starting(fields),
            registry=self._registry(fields),
        )
        for name, schema in (("schema", spec.schema), ("key_schema", spec.key_schema)):
            if is_wanted(schema) and not fields.has("registry"):
                fields.problem(name, f"{schema!r} needs the field registry, the registry's URL")
            elif schema is not None and not is_wanted(schema):
                check_schema(fields, name, schema)
        check_unknown_fields(fields, spec)
        check_format(fields, spec)
        fields.end(_ELSEWHERE)
        return spec

    def _registry(self, fields: Fields) -> RegistrySettings | None:
        """`registry = "http://..."`, or `[source.registry]` with `url` and client settings."""
        value = fields.value("registry")
        if value is None:
            return None
        try:
            return read_registry(
                dict(fields.settings("registry")) if isinstance(value, dict) else value
            )
        except PipelineError as error:
            fields.problem("registry", str(error))
            return None

    def _starting(self, fields: Fields) -> Any:
        value = fields.value("starting")
        allowed = (
            "'earliest', 'latest', 'table', a date with time and zone (2026-01-31T12:00:00Z), or "
            "an offset for each partition ({ 0 = 4711, 1 = 815 })"
        )
        if value is None:
            return "earliest"
        words = ("earliest", "latest", "table")
        if isinstance(value, str) and value not in words:
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                near = nearest(value, words)
                hint = f"; did you mean {near!r}?" if near else ""
                fields.problem("starting", f"{value!r} is not allowed; allowed: {allowed}{hint}")
                return "earliest"
        if isinstance(value, str):
            return value
        if isinstance(value, datetime):
            if value.tzinfo is None:
                fields.problem("starting", f"{value.isoformat()} has no time zone; put Z behind it")
            return value
        if isinstance(value, dict) and value:
            pairs = [(str(partition), offset) for partition, offset in value.items()]
            if all(
                partition.isdecimal() and type(offset) is int and offset >= 0
                for partition, offset in pairs
            ):
                return {int(partition): offset for partition, offset in pairs}
        fields.problem("starting", f"allowed: {allowed}")
        return "earliest"

    def _transform(self, fields: Fields, topic: str) -> TransformSpec:
        view = fields.text("view", "flights") or re.sub(r"\W", "_", topic) or "topic"
        if not _IDENTIFIER.fullmatch(view):
            if fields.has("view"):
                fields.problem("view", f"{view!r} is no name in SQL; allowed: letters, digits, '_'")
            view = f"topic_{view}"
        sql = fields.text("sql", f"SELECT value.*, partition, offset FROM {view}")
        function = self._function(fields)
        if sql and function and fields.has("function"):
            fields.problem("function", "give either sql or function, not both")
        tables = fields.table("tables")
        found = [self._table(tables, name, view) for name in tables.names()]
        fields.end(_ELSEWHERE)
        return TransformSpec(
            view, sql, None if sql else function, tuple(one for one in found if one is not None)
        )

    def _function(self, fields: Fields) -> FunctionSpec | None:
        given = fields.text("function", "flights.py:late")
        functions = self.python.functions if self.python else {}
        if given is None:
            if DEFAULT_FUNCTION in functions and not fields.has("sql"):
                given = DEFAULT_FUNCTION
            else:
                return None
        match = _FUNCTION.fullmatch(given)
        if not match or (match[1] is None and self.python is None):
            fields.problem("function", f"{given!r} is no function; write 'FILE.py:NAME'")
            return None
        file, name = match.groups()
        if file is None:
            if name not in functions:
                near = nearest(name, list(functions))
                hint = f"; did you mean {near!r}?" if near else ""
                fields.problem("function", f"{self.file.name} has no function {name!r}{hint}")
            elif functions[name] != 1:
                fields.problem(
                    "function",
                    f"{name} needs {functions[name]} arguments; it is called with one, the rows",
                )
        return FunctionSpec(Path(self._path(file)) if file else self.file, name)

    def _table(self, tables: Fields, name: str, view: str) -> TableSpec | None:
        fields = tables.table(name)
        if not _IDENTIFIER.fullmatch(name):
            tables.problem(name, "is no name in SQL; allowed: letters, digits, '_'")
        if name.lower() == view.lower():
            tables.problem(name, "is the name of the topic's view; give the table another one")
        given = read_options(fields, TableSpec, self._path)
        if given.get("schema"):
            check_schema(fields, "schema", given["schema"], of_table=True)
        fields.end()
        return TableSpec(name, **given) if given["format"] and given["path"] else None

    def _delivery(self, fields: Fields, is_there: bool, name: str) -> DeliverySpec | None:
        if not is_there:
            return None
        given = read_options(fields, DeliverySpec, self._path)
        spec = DeliverySpec(**{"group": name} | given, trigger=self._trigger(fields))
        if fields.has("on_unexpected") and not fields.has("expect"):
            fields.problem("on_unexpected", "says what becomes of rows by expect: write expect too")
        fields.end(_ELSEWHERE)
        return spec

    def _trigger(self, fields: Fields) -> tuple[str, str | bool] | None:
        value = fields.value("trigger")
        if value is None:
            return None
        if value == "available-now":
            return ("availableNow", True)
        if isinstance(value, str) and _INTERVAL.fullmatch(value):
            return ("processingTime", value)
        fields.problem(
            "trigger",
            f"{value!r} is not allowed; allowed: 'available-now' (take what there is and end), an "
            "interval such as '10 seconds', or no trigger (a batch as soon as there are rows)",
        )
        return None

    def _spark(self, fields: Fields) -> SparkSpec:
        spec = SparkSpec(**read_options(fields, SparkSpec, self._path))
        fields.end(_ELSEWHERE)
        return spec

    def _path(self, path: str) -> str:
        """A path relative to the file's folder; one with a scheme, such as s3a://, as it is."""
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path):
            return path
        return str(self.file.parent / path)
