"""`ottla pipeline check`: everything that can be found without running a query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from ottla.cli.command import command
from ottla.cli.failures import Failed
from ottla.cli.options import AS_JSON
from ottla.cli.pipeline.broker import look_up_topic
from ottla.cli.pipeline.file import checked_file
from ottla.cli.pipeline.options import file_options
from ottla.cli.pipeline.session import spark_of
from ottla.cli.rows import emit, only_json, row, show_rows
from ottla.cli.screen import note, say
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import ClusterState
from ottla.pipelines.program.sample import format_sample, is_mostly_rejected, read_sample
from ottla.pipelines.source.judge import Sample
from ottla.pipelines.spec.pipeline import FileSpec, PipelineSpec


@row
class SinkColumn:
    """A column that the query writes; its type is Spark's."""

    name: str
    type: str


@row
class CheckedPipeline:
    """What a pipeline reads and writes. `sample`: what becomes of the newest records; None if they
    were not parsed. `columns` is None if the query was not planned.
    """

    pipeline: str
    topic: str
    partitions: int
    messages: int
    group: str
    target: str
    delivery: str
    sample: dict[str, Any] | None = only_json()
    columns: list[SinkColumn] | None = only_json(default=None)
    notices: list[str] = only_json(default_factory=list)


@command()
@file_options(checked_file)
@click.option(
    "--spark/--no-spark",
    default=True,
    help="Also plan the queries, for which Spark is started.",
)
@AS_JSON
def check(spec: FileSpec, spark: bool, as_json: bool) -> None:
    """Find what is wrong with FILE and with what it needs; nothing is read or written."""
    check_file(spec, with_spark=spark, as_json=as_json)


def check_file(spec: FileSpec, *, with_spark: bool, as_json: bool) -> None:
    """Check the brokers, then plan the queries; raises Failed with all problems."""
    problems: list[str] = []
    found = []
    for pipeline in spec.pipelines:
        try:
            state = look_up_topic(pipeline)
            sample = read_sample(pipeline, state)
            found.append(checked_pipeline(pipeline, state, sample))
            problems += sample_problems(pipeline, sample)
        except Failed as error:
            problems.append(error.message)
    _raise(spec, problems)
    if with_spark:
        found = plan_all(spec, found, problems)
        _raise(spec, problems)
    if as_json:
        emit(found, as_json=True)
        return
    show_rows(found)
    for each in found:
        if each.columns:
            listed = ", ".join(f"{column.name} {column.type}" for column in each.columns)
            say(f"{each.pipeline} writes: {listed}")
        for notice in each.notices:
            note(f"{each.pipeline}: {notice}")
    how = "" if with_spark else " The queries were not planned (--no-spark)."
    say(f"Nothing wrong was found.{how}")


def sample_problems(pipeline: PipelineSpec, sample: Sample | str) -> list[str]:
    """Say what becomes of the newest records; returns the problem, if it is one."""
    line = f"{pipeline.name}: {format_sample(sample)}"
    if not isinstance(sample, str) and is_mostly_rejected(pipeline, sample):
        return [f"{line}. Mend the schema, or write on_rejects = 'continue'"]
    note(f"{line}.")
    return []


def plan_all(
    spec: FileSpec, found: list[CheckedPipeline], problems: list[str]
) -> list[CheckedPipeline]:
    """Plan each query in one session, and add its columns; problems are added to the list."""
    planned = []
    note("Starting Spark to plan the queries.")
    with spark_of(spec) as spark:
        from ottla.pipelines.file.build import plan_pipeline

        for pipeline, checked in zip(spec.pipelines, found, strict=True):
            try:
                plan = plan_pipeline(spark, pipeline)
            except PipelineError as error:
                problems.append(f"{pipeline.name}: {error}")
                continue
            columns = [
                SinkColumn(column.name, column.dataType.simpleString())
                for column in plan.specification.frame.schema.fields
            ]
            planned.append(replace(checked, columns=columns, notices=list(plan.notices)))
    return planned


def checked_pipeline(
    pipeline: PipelineSpec, cluster: ClusterState, sample: Sample | str
) -> CheckedPipeline:
    topic = cluster.topics[pipeline.source.topic]
    return CheckedPipeline(
        pipeline.name,
        topic.name,
        len(topic.latest),
        sum(topic.latest.values()) - sum(topic.earliest.values()),
        pipeline.delivery.group,
        pipeline.sink.target,
        pipeline.delivery.guarantee,
        None if isinstance(sample, str) else sample.document(),
    )


def _raise(spec: FileSpec, problems: list[str]) -> None:
    if len(problems) == 1:
        raise Failed(problems[0])
    if problems:
        raise Failed(f"{spec.file.name} has {len(problems)} problems.", "\n  ".join(problems))
