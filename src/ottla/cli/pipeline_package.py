"""`ottla pipeline package`: a pipeline file as a job for AWS Glue."""

from __future__ import annotations

from pathlib import Path

from ottla.cli.failures import UsageFailed
from ottla.cli.pipeline_file import AllSet, listed
from ottla.cli.screen import note, say
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.problem import FileError
from ottla.pipelines.glue.package import package


def package_file(
    file: Path, version: str, folder: Path | None, location: str | None, role: str | None
) -> None:
    """Write the job's folder and print what is in it. Raises UsageFailed."""
    places = {"location": location, "role": role}
    given = {name: value for name, value in places.items() if value is not None}
    # The job has its own environment: a variable that is not set here is no mistake.
    try:
        made = package(
            file, folder or Path(f"{file.stem}-glue"), version, environ=AllSet(), **given
        )
    except FileError as error:
        raise listed(file, error.problems) from error
    except PipelineError as error:
        raise UsageFailed(f"{error}.".replace("..", ".")) from error
    say(f"Packaged {file} for AWS Glue {version} in {made.folder}:")
    for path in (made.script, made.wheel, made.definition, made.jars):
        say(f"  {path.name}")
    for notice in made.notices:
        note(notice)
