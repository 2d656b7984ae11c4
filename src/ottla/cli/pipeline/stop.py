"""`ottla pipeline stop`: asks through what the pipelines keep on the broker."""

from __future__ import annotations

import getpass
import socket
import time
from typing import Final

import click

from ottla.cli.command import command
from ottla.cli.failures import EXIT_FAILED, Failed
from ottla.cli.pipeline.file import readable_file
from ottla.cli.pipeline.options import file_options
from ottla.cli.pipeline.status import ago, not_reached, read_pipeline, remarks, status_of
from ottla.cli.screen import note, say
from ottla.cli.value_types import MAX_S, WholeNumber
from ottla.cli.wrapping import printable
from ottla.client.patience import poll_until
from ottla.journey.formatting import format_elapsed
from ottla.pipelines.progress.group import Group, GroupError
from ottla.pipelines.progress.offset_metadata import Run
from ottla.pipelines.progress.requests import StopRequest, put_request
from ottla.pipelines.spec.pipeline import FileSpec, PipelineSpec

PAUSE_S: Final = 0.5


@command()
@file_options(readable_file)
@click.option(
    "--wait",
    "wait_s",
    type=WholeNumber(0, MAX_S),
    default=60,
    metavar="SECONDS",
    help="How long to wait for the end; 0: not.",
)
def stop(spec: FileSpec, wait_s: int) -> int:
    """Ask the pipelines of FILE to stop, wherever they run, and wait until they have."""
    asked: list[tuple[PipelineSpec, Run]] = []
    code = 0
    for pipeline in spec.pipelines:
        status, now_ms = read_pipeline(pipeline, with_lag=False), int(time.time() * 1_000)
        run = status.metadata.run if status.metadata else None
        if run is None or run.is_stale(now_ms):
            why = remarks(status_of(pipeline, status, now_ms), now_ms)[0]
            note(f"{pipeline.name} is not running: {why}")
            code = EXIT_FAILED
        elif run.has_ended:
            say(f"{pipeline.name} is not running: {run.state} {ago(run.seen_ms, now_ms)}.")
        else:
            request = StopRequest(run.id, asker(), now_ms)
            try:
                # A pipeline that has never run has no offset yet.
                partitions = list(status.offsets) or [(pipeline.source.topic, 0)]
                put_request(group_of(pipeline), partitions, request)
            except GroupError as error:
                raise not_reached(pipeline, error) from error
            asked.append((pipeline, run))
    for pipeline, run in asked:
        if wait_s == 0:
            say(f"{pipeline.name} was asked to stop.")
        else:
            say(f"{pipeline.name} {_wait_for_end(pipeline, run, wait_s)}.")
    return code


def asker() -> str:
    """`anna@laptop`: who stopped the pipeline, for the person who finds it stopped."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = "someone"
    return f"{user}@{socket.gethostname()}"


def _wait_for_end(pipeline: PipelineSpec, asked: Run, wait_s: int) -> str:
    began_s = time.monotonic()

    def look() -> Run | None:
        metadata = read_pipeline(pipeline, with_lag=False).metadata
        return metadata.run if metadata else None

    def has_ended(run: Run | None) -> bool:
        return run is not None and (run.id != asked.id or run.has_ended)

    run = poll_until(look, has_ended, within_s=wait_s, pause_s=PAUSE_S)
    if run is None or not has_ended(run):
        raise Failed(
            f"{pipeline.name} has not stopped within {wait_s} s; the request stands.",
            "To see what it does: ottla pipeline status FILE",
        )
    if run.id == asked.id and run.state == "failed":
        raise Failed(f"{pipeline.name} failed: {printable(run.failure or '')}")
    return f"has stopped after {format_elapsed(int((time.monotonic() - began_s) * 1_000))}"


def group_of(pipeline: PipelineSpec) -> Group:
    return Group(pipeline.source.kafka.for_librdkafka(), pipeline.delivery.group)
