"""`ottla pipeline maintain`: the tables of a file's pipelines kept small and fast to read."""

from __future__ import annotations

from dataclasses import asdict

import click

from ottla.cli.command import command
from ottla.cli.failures import Failed
from ottla.cli.options import AS_JSON
from ottla.cli.pipeline.file import checked_file
from ottla.cli.pipeline.options import file_options
from ottla.cli.pipeline.session import spark_of
from ottla.cli.rows import column, emit, row
from ottla.cli.screen import note, say
from ottla.cli.value_types import Number
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.spec.pipeline import FileSpec

MAX_HOURS = 1_000_000
"""A century: no file is as old."""


@row
class MaintainedTable:
    """A table whose small files were joined; `deleted` are files that nothing needs any more."""

    pipeline: str
    table: str
    files_before: int = column("files", lambda each: f"{each.files_before:,}")
    files_after: int = column("after", lambda each: f"{each.files_after:,}")
    deleted: int = column(cell=lambda each: f"{each.deleted:,}")
    kept_hours: float = column("kept", lambda each: f"{each.kept_hours:g} h")


@row
class TableToMaintain(MaintainedTable):
    """The same with --dry-run."""

    files_after: int = column("after", lambda each: "-")
    deleted: int = column("to delete", lambda each: f"{each.deleted:,}")


@command()
@file_options(checked_file)
@click.option(
    "--keep",
    "keep_hours",
    type=Number(0, MAX_HOURS),
    metavar="HOURS",
    help="Keep unused files so long; by default, and at least, as long as the table says.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; change nothing.")
@AS_JSON
def maintain(spec: FileSpec, keep_hours: float | None, dry_run: bool, as_json: bool) -> None:
    """Join the small files of the tables of FILE, and delete files that nothing needs any more."""
    pipelines = [one for one in spec.pipelines if one.sink.has_maintenance]
    if not pipelines:
        raise Failed(f"{spec.file.name} writes no table that Ottla maintains.")
    note("Starting Spark.")
    problems: list[str] = []
    kind = TableToMaintain if dry_run else MaintainedTable
    done: list[MaintainedTable] = []
    with spark_of(spec, with_formats=False) as spark:
        from ottla.pipelines.failures.known import About
        from ottla.pipelines.run.reported import reported

        for pipeline in pipelines:
            sink = pipeline.sink
            try:
                with reported(About(pipeline.name, sink.target, failures=sink.failures)):
                    tables = sink.maintain(spark, keep_hours=keep_hours, dry_run=dry_run)
            except PipelineError as error:
                problems.append(f"{pipeline.name}: {error}")
                continue
            done += [kind(pipeline.name, **asdict(table)) for table in tables]
    emit(done, as_json=as_json)
    if done and dry_run and not as_json:
        say("Nothing was changed (--dry-run).")
    if problems:
        raise Failed("\n  ".join(problems))
