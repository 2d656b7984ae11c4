"""`ottla pipeline`: run, check, watch and stop the pipelines of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.typer_options import AsJson

commands = typer.Typer(
    help="Run pipelines into Delta: run, check, status, stop, rejects, maintain, package."
)

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="The pipeline file: FILE.toml or FILE.py.")
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="This pipeline of the file. Again for more."),
]


@commands.command()
def run(
    file: File,
    only: Only = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="LOG", help="Where Spark's own log goes."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each batch.")
    ] = False,
) -> None:
    """Run the pipelines of FILE until they end, or until Ctrl-C or SIGTERM."""
    from ottla.cli.pipeline_file import checked_file
    from ottla.cli.pipeline_run import run_file

    raise typer.Exit(run_file(checked_file(file, only), log, as_json=as_json))


@commands.command()
def check(
    file: File,
    only: Only = None,
    spark: Annotated[
        bool, typer.Option(help="Also plan the queries, for which Spark is started.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Find what is wrong with FILE and with what it needs; nothing is read or written."""
    from ottla.cli.pipeline_check import check_file
    from ottla.cli.pipeline_file import checked_file

    check_file(checked_file(file, only), with_spark=spark, as_json=as_json)


@commands.command()
def status(file: File, only: Only = None, as_json: AsJson = False) -> None:
    """Show what the broker knows of the pipelines of FILE, on any machine that reaches it."""
    from ottla.cli.pipeline_file import readable_file
    from ottla.cli.pipeline_status import show_status

    raise typer.Exit(show_status(readable_file(file, only), as_json=as_json))


@commands.command()
def stop(
    file: File,
    only: Only = None,
    wait: Annotated[
        int,
        typer.Option(min=0, metavar="SECONDS", help="How long to wait for the end; 0: not."),
    ] = 60,
) -> None:
    """Ask the pipelines of FILE to stop, wherever they run, and wait until they have."""
    from ottla.cli.pipeline_file import readable_file
    from ottla.cli.pipeline_status import stop_pipelines

    raise typer.Exit(stop_pipelines(readable_file(file, only), wait))


@commands.command()
def rejects(
    file: File,
    only: Only = None,
    newest: Annotated[
        int,
        typer.Option("--newest", min=0, max=1_000, metavar="N", help="How many rows to show."),
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Count the rejected rows of the tables of FILE by reason, and show the newest."""
    from ottla.cli.pipeline_file import checked_file
    from ottla.cli.pipeline_rejects import show_rejects

    show_rejects(checked_file(file, only), newest, as_json=as_json)


@commands.command()
def maintain(
    file: File,
    only: Only = None,
    keep: Annotated[
        float | None,
        typer.Option(
            "--keep",
            min=0,
            metavar="HOURS",
            help="Keep unused files so long; by default, and at least, as long as the table says.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted; change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Join the small files of the tables of FILE, and delete files that nothing needs any more."""
    from ottla.cli.pipeline_file import checked_file
    from ottla.cli.pipeline_maintain import maintain_file

    maintain_file(checked_file(file, only), keep, dry_run=dry_run, as_json=as_json)


@commands.command()
def package(
    file: File,
    glue: Annotated[
        str, typer.Option("--glue", metavar="VERSION", help="AWS Glue's version, such as 6.0.")
    ],
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="The folder to write; by default FILE-glue."),
    ] = None,
    location: Annotated[
        str | None,
        typer.Option("--location", metavar="S3URL", help="Where the folder is uploaded to."),
    ] = None,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="The IAM role that runs the job.")
    ] = None,
) -> None:
    """Write what AWS Glue needs to run FILE: script, wheel, job definition, list of jars."""
    from ottla.cli.pipeline_package import package_file

    package_file(file, glue, to, location, role)
