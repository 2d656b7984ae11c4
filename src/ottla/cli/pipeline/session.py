"""A Spark session for a command that works with the tables of a pipeline file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.cli.failures import Failed
from ottla.cli.output import screen_of
from ottla.cli.screen import note
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.program.spark_output import SPARK_SETTINGS, SparkOutput
from ottla.pipelines.spec.pipeline import FileSpec, PipelineSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_of(spec: FileSpec, *, with_formats: bool = True) -> Iterator[SparkSession]:
    """The session of a file while the block runs; what Spark writes goes into a file, which is
    named where the session or the block fails. Raises Failed.
    """
    with SparkOutput(spec.file.stem, screen_of) as output:
        from ottla.pipelines.file.build import open_session

        try:
            spark = open_session(spec, conf=SPARK_SETTINGS, with_formats=with_formats)
            try:
                yield spark
            finally:
                spark.stop()
        except PipelineError as error:
            raise Failed(str(error), f"Spark's log: {output.file}") from error


def with_rejects(spec: FileSpec) -> list[PipelineSpec]:
    """The pipelines that keep rejected rows beside their target; of others it is said that they do
    not. Raises Failed if there is none.
    """
    found = [pipeline for pipeline in spec.pipelines if pipeline.sink.keeps_rejects]
    for pipeline in spec.pipelines:
        if not pipeline.sink.keeps_rejects:
            note(f"{pipeline.name} writes a topic, which has no rejected rows beside it.")
    if not found:
        raise Failed(f"No pipeline of {spec.file.name} writes a table.")
    return found
