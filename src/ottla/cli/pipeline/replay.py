"""`ottla pipeline replay`: rejected rows of a file's pipelines through them once more.

The rows are made purely; `pipelines.replay` sends the rejected ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.failures import Failed
from ottla.cli.options import AS_JSON
from ottla.cli.pipeline.file import checked_file
from ottla.cli.pipeline.options import file_options
from ottla.cli.pipeline.session import spark_of, with_rejects
from ottla.cli.rows import column, emit, row, show_rows
from ottla.cli.screen import note, say
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.replay.outcome import Replayed
from ottla.pipelines.spec.pipeline import FileSpec
from ottla.wording.plural import plural


@row
class ReplayedReasonRow:
    """The records that were rejected for one reason: sent again, or rejected again."""

    rows: int
    sent: int
    rejected: int
    reason: str = column("rejected before for")


@row
class KeptReasonRow:
    """Why records were rejected again."""

    rows: int
    reason: str = column("rejected again for")


@row
class ReplayOfPipeline:
    """What became of the rejected rows of one pipeline; with `dry_run`, what would.

    `sent` records went through the pipeline, which made `written` rows of them; `not_found` are
    rows whose record is not known or no longer there.
    """

    pipeline: str
    target: str
    table: str
    dry_run: bool
    rows: int
    sent: int
    rejected: int
    not_found: int
    written: int
    finished: int | None
    reasons: list[ReplayedReasonRow]
    rejected_again: list[KeptReasonRow]

    def show(self) -> None:
        if self.finished is not None:
            done = plural(self.finished, "row")
            say(f"{self.pipeline}: a replay that was cut off is complete: {done} in {self.target}.")
        if not self.rows:
            say(f"{self.pipeline}: no row is to be sent again ({self.table}).")
            return
        would = "would be " if self.dry_run else ""
        say(
            f"{self.pipeline}: {plural(self.rows, 'rejected row')} in {self.table}: "
            f"{self.sent:,} {would}sent again, {self.rejected:,} {would}rejected again"
        )
        if self.reasons:
            show_rows(self.reasons)
        if self.rejected_again:
            say("")
            show_rows(self.rejected_again)
        if self.not_found:
            note(
                f"{self.pipeline}: {plural(self.not_found, 'row')} without a record: the topic no "
                "longer has it, or the row does not say which one it is."
            )


@command()
@file_options(checked_file)
@click.option(
    "--reason",
    "reasons",
    metavar="TEXT",
    multiple=True,
    help="Only rows whose reason contains this text. Again for more.",
)
@click.option(
    "--dead-letters",
    is_flag=True,
    help="Take the rows from the topic of dead_letters, not from beside the target.",
)
@click.option("--dry-run", is_flag=True, help="Say what would become of them; change nothing.")
@AS_JSON
def replay(
    spec: FileSpec, reasons: Sequence[str], dead_letters: bool, dry_run: bool, as_json: bool
) -> None:
    """Send the rejected rows of the pipelines of FILE through them once more, each once."""
    pipelines = with_rejects(spec)
    note("Starting Spark.")
    problems: list[str] = []
    done: list[ReplayOfPipeline] = []
    with spark_of(spec) as spark:
        from ottla.pipelines.file.build import replay_pipeline

        for pipeline in pipelines:
            name = pipeline.name

            def tell(line: str, name: str = name) -> None:
                note(f"{name}: {line}.")

            try:
                found = replay_pipeline(
                    spark,
                    pipeline,
                    reasons=reasons,
                    dead_letters=dead_letters,
                    dry_run=dry_run,
                    tell=tell,
                )
            except PipelineError as error:
                problems.append(f"{name}: {error}")
                continue
            done.append(replay_of(name, pipeline.sink.target, found, dry_run=dry_run))
    emit(done, as_json=as_json)
    if done and dry_run and not as_json:
        say("Nothing was changed (--dry-run).")
    if problems:
        raise Failed("\n  ".join(problems))


def replay_of(name: str, target: str, found: Replayed, *, dry_run: bool) -> ReplayOfPipeline:
    """Pure."""
    return ReplayOfPipeline(
        name,
        target,
        found.table,
        dry_run,
        found.rows,
        found.sent,
        found.kept,
        found.not_found,
        found.written,
        found.finished,
        [ReplayedReasonRow(one.rows, one.sent, one.kept, one.reason) for one in found.reasons],
        [KeptReasonRow(rows, reason) for reason, rows in found.kept_reasons],
    )
