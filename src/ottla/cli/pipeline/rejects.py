"""`ottla pipeline rejects`: rejected rows of a file's tables by reason, and the newest of them.

The rows are made purely; Spark reads the tables (`pipelines.rejects.table`).
"""

from __future__ import annotations

from typing import Any, Final

import click

from ottla.cli.command import command
from ottla.cli.options import AS_JSON
from ottla.cli.pipeline.file import checked_file
from ottla.cli.pipeline.options import file_options
from ottla.cli.pipeline.session import spark_of, with_rejects
from ottla.cli.rows import NOT_ASKED, NotAsked, column, emit, only_json, row, show_rows
from ottla.cli.screen import note, say
from ottla.cli.value_types import WholeNumber
from ottla.messaging.jsonlines import put_bytes
from ottla.messaging.rendering import escape, ms_text
from ottla.pipelines.rejects.table import RejectedRow, RejectedRows
from ottla.pipelines.spec.pipeline import FileSpec
from ottla.wording.plural import plural

MAX_SHOWN_CHARACTERS: Final = 120


@row
class ReasonRow:
    """How many rows were rejected for one reason, and when."""

    rows: int
    first_ms: int | None = column("first", lambda each: ms_text(each.first_ms))
    last_ms: int | None = column("last", lambda each: ms_text(each.last_ms))
    reason: str


@row
class NewestRow:
    """A rejected row: the record's partition, offset and bytes, or the `row` that a constraint
    refused. Bytes that are no text are in base 64.
    """

    newest: str = column(in_json=False)
    topic: str | None = only_json()
    partition: int | None = only_json()
    offset: int | None = only_json()
    timestamp: int | None = column("time", lambda each: ms_text(each.timestamp))
    reason: str
    shown: str = column("value", in_json=False)
    key: str | None = only_json()
    key_base64: bool | NotAsked = only_json()
    value: str | None = only_json()
    value_base64: bool | NotAsked = only_json()
    row: str | None = only_json()


@row
class RejectsOfPipeline:
    """The rejected rows of one pipeline; `table` is None if there is none."""

    pipeline: str
    target: str
    table: str | None
    rows: int
    reasons: list[ReasonRow]
    newest: list[NewestRow]

    def show(self) -> None:
        if not self.rows:
            say(f"{self.pipeline}: no row was rejected ({self.target}).")
            return
        say(f"{self.pipeline}: {plural(self.rows, 'row')} in {self.table}")
        show_rows(self.reasons, like=ReasonRow)
        if self.newest:
            say("")
            show_rows(self.newest)


@command()
@file_options(checked_file)
@click.option("--newest", type=WholeNumber(0, 1_000), default=10, help="How many rows to show.")
@AS_JSON
def rejects(spec: FileSpec, newest: int, as_json: bool) -> None:
    """Count the rejected rows of the tables of FILE by reason, and show the newest."""
    tables = with_rejects(spec)
    note("Starting Spark to read the tables.")
    found: list[RejectsOfPipeline] = []
    with spark_of(spec, with_formats=False) as spark:
        from ottla.pipelines.failures.known import About
        from ottla.pipelines.rejects.table import read_rejected
        from ottla.pipelines.run.reported import reported

        for pipeline in tables:
            sink = pipeline.sink
            with reported(About(pipeline.name, sink.target, failures=sink.failures)):
                rows = read_rejected(sink.rejected(spark), newest, pipeline.source.topic)
            found.append(rejects_of(pipeline.name, sink.target, rows))
    emit(found, as_json=as_json)


def rejects_of(name: str, target: str, rejected: RejectedRows | None) -> RejectsOfPipeline:
    """Pure."""
    if rejected is None:
        return RejectsOfPipeline(name, target, None, 0, [], [])
    return RejectsOfPipeline(
        name,
        target,
        rejected.table,
        rejected.rows,
        [ReasonRow(one.rows, one.first_ms, one.last_ms, one.reason) for one in rejected.reasons],
        [newest_row(one) for one in rejected.newest],
    )


def newest_row(rejected: RejectedRow) -> NewestRow:
    """Pure."""
    bytes_: dict[str, Any] = {}
    put_bytes(bytes_, "key", rejected.key)
    put_bytes(bytes_, "value", rejected.value)
    has_offset = rejected.offset is not None
    position = f"{rejected.topic}-{rejected.partition}@{rejected.offset}" if has_offset else "-"
    is_row = rejected.value is None and rejected.row
    data = str(rejected.row) if is_row else escape(rejected.value).decode()
    if len(data) > MAX_SHOWN_CHARACTERS:
        data = f"{data[:MAX_SHOWN_CHARACTERS]}…"
    return NewestRow(
        newest=position,
        topic=rejected.topic,
        partition=rejected.partition,
        offset=rejected.offset,
        timestamp=rejected.timestamp_ms,
        reason=rejected.reason,
        shown=data,
        key=bytes_["key"],
        key_base64=bytes_.get("key_base64", NOT_ASKED),
        value=bytes_["value"],
        value_base64=bytes_.get("value_base64", NOT_ASKED),
        row=rejected.row,
    )
