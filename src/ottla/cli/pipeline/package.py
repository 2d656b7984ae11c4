"""`ottla pipeline package`: a pipeline file as a job for AWS Glue."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.command import command
from ottla.cli.failures import UsageFailed
from ottla.cli.pipeline.file import AllSet, listed
from ottla.cli.pipeline.options import FILE
from ottla.cli.screen import note, say
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.glue.package import package as packaged
from ottla.pipelines.spec.problem import FileError


@command()
@FILE
@click.option("--glue", required=True, metavar="VERSION", help="AWS Glue's version, such as 6.0.")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder to write; by default FILE-glue.",
)
@click.option("--location", metavar="S3URL", help="Where the folder is uploaded to.")
@click.option("--role", metavar="ROLE", help="The IAM role that runs the job.")
def package(file: Path, glue: str, to: Path | None, location: str | None, role: str | None) -> None:
    """Write what AWS Glue needs to run FILE: script, wheel, job definition, list of jars."""
    given_paths = {"location": location, "role": role}
    given = {name: value for name, value in given_paths.items() if value is not None}
    # The job has its own environment: a variable that is not set here is no mistake.
    try:
        made = packaged(file, to or Path(f"{file.stem}-glue"), glue, environ=AllSet(), **given)
    except FileError as error:
        raise listed(file, error.problems) from error
    except PipelineError as error:
        raise UsageFailed(f"{error}.".replace("..", ".")) from error
    say(f"Packaged {file} for AWS Glue {glue} in {made.folder}:")
    for path in (made.script, made.wheel, made.definition, made.jars):
        say(f"  {path.name}")
    for notice in made.notices:
        note(notice)
