"""`ottla pipeline run`: what is looked up before, and where Spark and the pipelines write."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.command import command
from ottla.cli.failures import Failed
from ottla.cli.output import screen_of
from ottla.cli.pipeline.broker import look_up_topic
from ottla.cli.pipeline.file import checked_file
from ottla.cli.pipeline.options import file_options
from ottla.cli.pipeline.view import open_view
from ottla.pipelines.checkpoint.lease import taken_here
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.locations import shown_location
from ottla.pipelines.program.session import Session
from ottla.pipelines.program.spark_output import SPARK_SETTINGS, SparkOutput
from ottla.pipelines.spec.pipeline import FileSpec


@command()
@file_options(checked_file)
@click.option(
    "--log", type=click.Path(path_type=Path), metavar="LOG", help="Where Spark's own log goes."
)
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each batch.")
def run(spec: FileSpec, log: Path | None, as_json: bool) -> int:
    """Run the pipelines of FILE until they end, or until Ctrl-C or SIGTERM."""
    clusters = []
    for pipeline in spec.pipelines:
        clusters.append(look_up_topic(pipeline))
        if taken := taken_here(Path(shown_location(pipeline.delivery.checkpoint))):
            raise Failed(f"{pipeline.name}: {taken}.")
    with SparkOutput(spec.file.stem, screen_of, log) as output:
        session = Session(
            spec,
            open_view(as_json=as_json),
            clusters,
            spark_settings=SPARK_SETTINGS,
            spark_log=output.file,
        )
        try:
            return session.run()
        except PipelineError as error:
            raise Failed(str(error)) from error
