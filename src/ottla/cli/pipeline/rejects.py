"""`ottla pipeline rejects`: rejected rows of a file's tables by reason, and the newest of them.

Documents and rows are made purely; Spark reads the tables (`pipelines.run.rejected_table`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from ottla.cli.command import command
from ottla.cli.failures import Failed
from ottla.cli.options import AS_JSON
from ottla.cli.pipeline.file import checked_file
from ottla.cli.pipeline.options import FILE, ONLY
from ottla.cli.pipeline.output import SPARK_SETTINGS, SparkOutput
from ottla.cli.plural import plural
from ottla.cli.records.jsonlines import put_bytes
from ottla.cli.records.rendering import escape, time_text
from ottla.cli.screen import note, say, show_json, show_table
from ottla.cli.value_types import WholeNumber
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.specification import FileSpec
from ottla.pipelines.run.rejected_table import RejectedRow, RejectedRows

Document = dict[str, Any]

MAX_SHOWN_CHARACTERS: Final = 120
_CREATED: Final = 1  # librdkafka's number for a time that the producer gave


@command()
@FILE
@ONLY
@click.option(
    "--newest",
    type=WholeNumber(0, 1_000),
    default=10,
    metavar="N",
    help="How many rows to show.",
)
@AS_JSON
def rejects(file: Path, only: Sequence[str], newest: int, as_json: bool) -> None:
    """Count the rejected rows of the tables of FILE by reason, and show the newest."""
    show_rejects(checked_file(file, only), newest, as_json=as_json)


def show_rejects(spec: FileSpec, newest: int, *, as_json: bool) -> None:
    """Show the rejected rows of each pipeline of a file. Raises Failed."""
    tables = [pipeline for pipeline in spec.pipelines if pipeline.sink.topic is None]
    for pipeline in spec.pipelines:
        if pipeline.sink.topic is not None:
            note(f"{pipeline.name} writes a topic, which has no rejected rows beside it.")
    if not tables:
        raise Failed(f"No pipeline of {spec.file.name} writes a table.")
    note("Starting Spark to read the tables.")
    found: list[tuple[str, str, RejectedRows | None]] = []
    with SparkOutput(spec.file.stem) as output:
        from ottla.pipelines.file.build import open_session, rejected_place
        from ottla.pipelines.run.failures import About
        from ottla.pipelines.run.rejected_table import read_rejected
        from ottla.pipelines.run.report import reported

        try:
            spark = open_session(spec, conf=SPARK_SETTINGS, with_formats=False)
            try:
                for pipeline in tables:
                    target = pipeline.sink.target
                    with reported(About(query=pipeline.name, target=target)):
                        rows = read_rejected(rejected_place(spark, pipeline), newest)
                    found.append((pipeline.name, target, rows))
            finally:
                spark.stop()
        except PipelineError as error:
            raise Failed(str(error), f"Spark's log: {output.file}") from error
    if as_json:
        show_json([document(name, target, rows) for name, target, rows in found])
        return
    for number, (name, target, rows) in enumerate(found):
        if number:
            say("")
        _show(name, target, rows)


def document(name: str, target: str, rejected: RejectedRows | None) -> Document:
    """One pipeline in the list of `--json`. Pure."""
    return {
        "pipeline": name,
        "target": target,
        "table": rejected.table if rejected else None,
        "rows": rejected.rows if rejected else 0,
        "reasons": [
            {
                "reason": one.reason,
                "rows": one.rows,
                "first_ms": one.first_ms,
                "last_ms": one.last_ms,
            }
            for one in (rejected.reasons if rejected else ())
        ],
        "newest": [_row_document(row) for row in (rejected.newest if rejected else ())],
    }


def _row_document(row: RejectedRow) -> Document:
    found: Document = {
        "topic": row.topic,
        "partition": row.partition,
        "offset": row.offset,
        "timestamp": row.timestamp_ms,
        "reason": row.reason,
    }
    put_bytes(found, "key", row.key)
    put_bytes(found, "value", row.value)
    found["row"] = row.row
    return found


def cells(row: RejectedRow) -> list[object]:
    """One row of the table for people. Pure."""
    place = "-" if row.offset is None else f"{row.topic}-{row.partition}@{row.offset}"
    data = row.row if row.value is None and row.row else escape(row.value).decode()
    if len(data) > MAX_SHOWN_CHARACTERS:
        data = f"{data[:MAX_SHOWN_CHARACTERS]}…"
    return [place, _time(row.timestamp_ms), row.reason, data]


def _show(name: str, target: str, rejected: RejectedRows | None) -> None:
    if rejected is None or not rejected.rows:
        say(f"{name}: no row was rejected ({target}).")
        return
    say(f"{name}: {plural(rejected.rows, 'row')} in {rejected.table}")
    show_table(
        ["rows", "first", "last", "reason"],
        [
            [one.rows, _time(one.first_ms), _time(one.last_ms), one.reason]
            for one in rejected.reasons
        ],
    )
    if rejected.newest:
        say("")
        show_table(["newest", "time", "reason", "value"], [cells(row) for row in rejected.newest])


def _time(at_ms: int | None) -> str:
    return "-" if at_ms is None else time_text(_CREATED, at_ms)
