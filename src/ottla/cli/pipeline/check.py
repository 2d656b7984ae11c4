"""`ottla pipeline check`: everything that can be found without running a query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from ottla.cli.command import command
from ottla.cli.failures import Failed
from ottla.cli.options import AS_JSON
from ottla.cli.pipeline.broker import look_up_topic
from ottla.cli.pipeline.file import checked_file
from ottla.cli.pipeline.options import FILE, ONLY
from ottla.cli.pipeline.output import SPARK_SETTINGS, SparkOutput
from ottla.cli.screen import note, say, show_json, show_table
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.specification import FileSpec, PipelineSpec
from ottla.pipelines.kafka.brokers import ClusterState
from ottla.pipelines.session.sample import format_sample, is_mostly_rejected, read_sample

Document = dict[str, Any]

COLUMNS: Final = ("pipeline", "topic", "partitions", "messages", "group", "target", "delivery")


@command()
@FILE
@ONLY
@click.option(
    "--spark/--no-spark",
    default=True,
    help="Also plan the queries, for which Spark is started.",
)
@AS_JSON
def check(file: Path, only: Sequence[str], spark: bool, as_json: bool) -> None:
    """Find what is wrong with FILE and with what it needs; nothing is read or written."""
    check_file(checked_file(file, only), with_spark=spark, as_json=as_json)


def check_file(spec: FileSpec, *, with_spark: bool, as_json: bool) -> None:
    """Check the brokers, then plan the queries; raises Failed with all problems."""
    problems: list[str] = []
    found = []
    for pipeline in spec.pipelines:
        try:
            state = look_up_topic(pipeline)
            found.append(_topic_document(pipeline, state))
            problems += parse_sample(pipeline, state, found[-1])
        except Failed as error:
            problems.append(error.message)
    _raise(spec, problems)
    if with_spark:
        plan_all(spec, found, problems)
        _raise(spec, problems)
    if as_json:
        show_json(found)
        return
    show_table(COLUMNS, [[document[name] for name in COLUMNS] for document in found])
    for document in found:
        if columns := document["columns"]:
            listed = ", ".join(f"{column['name']} {column['type']}" for column in columns)
            say(f"{document['pipeline']} writes: {listed}")
        for notice in document["notices"]:
            note(f"{document['pipeline']}: {notice}")
    how = "" if with_spark else " The queries were not planned (--no-spark)."
    say(f"Nothing wrong was found.{how}")


def parse_sample(pipeline: PipelineSpec, state: ClusterState, document: Document) -> list[str]:
    """Parse the newest records before Spark starts; returns the problem, if it is one."""
    sample = read_sample(pipeline, state)
    line = f"{pipeline.name}: {format_sample(sample)}"
    if not isinstance(sample, str):
        document["sample"] = sample.document()
        if is_mostly_rejected(pipeline, sample):
            return [f"{line}. Mend the schema, or write on_rejects = 'continue'"]
    note(f"{line}.")
    return []


def plan_all(spec: FileSpec, found: list[Document], problems: list[str]) -> None:
    """Plan each query in one session; problems are added to the list."""
    note("Starting Spark to plan the queries.")
    with SparkOutput(spec.file.stem) as output:
        from ottla.pipelines.file.build import open_session, plan_pipeline

        try:
            spark = open_session(spec, conf=SPARK_SETTINGS)
        except PipelineError as error:
            raise Failed(str(error), f"Spark's log: {output.file}") from error
        try:
            for pipeline, document in zip(spec.pipelines, found, strict=True):
                try:
                    plan = plan_pipeline(spark, pipeline)
                except PipelineError as error:
                    problems.append(f"{pipeline.name}: {error}")
                    continue
                document["columns"] = [
                    {"name": column.name, "type": column.dataType.simpleString()}
                    for column in plan.specification.frame.schema.fields
                ]
                document["notices"] = list(plan.notices)
        finally:
            spark.stop()


def _topic_document(pipeline: PipelineSpec, cluster: ClusterState) -> Document:
    topic = cluster.topics[pipeline.source.topic]
    return {
        "pipeline": pipeline.name,
        "topic": topic.name,
        "partitions": len(topic.latest),
        "messages": sum(topic.latest.values()) - sum(topic.earliest.values()),
        "group": pipeline.delivery.group,
        "target": pipeline.sink.target,
        "delivery": pipeline.delivery.guarantee,
        "sample": None,
        "columns": None,
        "notices": [],
    }


def _raise(spec: FileSpec, problems: list[str]) -> None:
    if len(problems) == 1:
        raise Failed(problems[0])
    if problems:
        raise Failed(f"{spec.file.name} has {len(problems)} problems.", "\n  ".join(problems))
