"""`ottla pipeline maintain`: the Delta tables of a file's pipelines kept small and fast to read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ottla.cli.failures import Failed
from ottla.cli.pipeline_output import SPARK_SETTINGS, SparkOutput
from ottla.cli.screen import note, say, show_json, show_table
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.specification import FileSpec

Document = dict[str, Any]


def maintain_file(
    spec: FileSpec, keep_hours: float | None, *, dry_run: bool, as_json: bool
) -> None:
    """Join small files and delete unused ones; raises Failed with all problems at the end."""
    pipelines = [one for one in spec.pipelines if one.sink.is_delta]
    if not pipelines:
        raise Failed(f"{spec.file.name} writes no Delta table: there is nothing to maintain.")
    note("Starting Spark.")
    problems: list[str] = []
    done: list[Document] = []
    with SparkOutput(spec.file.stem) as output:
        from ottla.pipelines.file.build import open_session
        from ottla.pipelines.run.failures import About
        from ottla.pipelines.run.report import reported
        from ottla.pipelines.sinks.maintenance import maintain

        try:
            spark = open_session(spec, conf=SPARK_SETTINGS, with_formats=False)
        except PipelineError as error:
            raise Failed(str(error), f"Spark's log: {output.file}") from error
        try:
            for pipeline in pipelines:
                target = pipeline.sink.target
                try:
                    with reported(About(query=pipeline.name, target=target)):
                        tables = maintain(spark, target, keep_hours=keep_hours, dry_run=dry_run)
                except PipelineError as error:
                    problems.append(f"{pipeline.name}: {error}")
                    continue
                done += [{"pipeline": pipeline.name, **asdict(table)} for table in tables]
        finally:
            spark.stop()
    _show(done, dry_run=dry_run, as_json=as_json)
    if problems:
        raise Failed("\n  ".join(problems))


def _show(done: list[Document], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        show_json(done)
        return
    if not done:
        return
    deleted = "to delete" if dry_run else "deleted"
    show_table(
        ["pipeline", "table", "files", "after", deleted, "kept"],
        [
            [
                one["pipeline"],
                one["table"],
                f"{one['files_before']:,}",
                "-" if dry_run else f"{one['files_after']:,}",
                f"{one['deleted']:,}",
                f"{one['kept_hours']:g} h",
            ]
            for one in done
        ],
    )
    if dry_run:
        say("Nothing was changed (--dry-run).")
