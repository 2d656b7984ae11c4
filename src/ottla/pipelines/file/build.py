"""From specifications to Spark: the session, the frames, and the queries."""

from __future__ import annotations

import functools
import importlib.util
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from ottla.pipelines.errors import PipelineError, require_pyspark
from ottla.pipelines.failures.known import About
from ottla.pipelines.failures.sentences import explain
from ottla.pipelines.file.formats import formats_of
from ottla.pipelines.replay.outcome import Replayed
from ottla.pipelines.replay.replay import Replay
from ottla.pipelines.run.plan import Plan, plan
from ottla.pipelines.run.reported import reported
from ottla.pipelines.run.spark_log import silence_pyspark
from ottla.pipelines.run.specification import Specification
from ottla.pipelines.run.start import start
from ottla.pipelines.source.topic import rows_of, topic
from ottla.pipelines.spark.start import session
from ottla.pipelines.spec.option import options_of
from ottla.pipelines.spec.pipeline import (
    DeliverySpec,
    FileSpec,
    FunctionSpec,
    PipelineSpec,
    SourceSpec,
    TableSpec,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ottla.pipelines.progress.offset_metadata import Run
    from ottla.pipelines.source.source import Source


_ARGUMENTS: Final = {one.name for one in fields(Specification)}


def open_session(
    spec: FileSpec, *, conf: Mapping[str, Any] | None = None, with_formats: bool = True
) -> SparkSession:
    """Return the session that a file describes; its own `[spark.conf]` wins over `conf`.

    `with_formats`: with Spark's modules for what the topics hold, for which the schema registries
    are asked.

    Raises PipelineError.
    """
    spark = spec.spark
    chosen: dict[str, Any] = {} if spark.master is None else {"master": spark.master}
    made = session(
        spec.file.stem,
        packages=spark.packages,
        formats=formats_of(spec) if with_formats else (),
        jars=spark.jars or None,
        ivy_settings=spark.ivy_settings,
        conf={**(conf or {}), **dict(spark.conf)},
        **chosen,
    )
    silence_pyspark()
    return made


def build_frame(
    spark: SparkSession, spec: PipelineSpec, records: DataFrame | None = None
) -> DataFrame:
    """Return the rows that a pipeline writes, planned and not read.

    `records`: rows as `topic` gives them, in place of the topic.

    Raises PipelineError: SQL that Spark refuses, a function that fails, a table that is not there.
    """
    require_pyspark()
    from pyspark.errors import PySparkException

    source, transform = spec.source, spec.transform
    rows = _topic(spark, source) if records is None else records
    rows.createOrReplaceTempView(transform.view)
    for table in transform.tables:
        _make_view(spark, table)
    if transform.function is not None:
        return _call(transform.function, rows)
    if transform.sql is None:
        return rows
    try:
        return spark.sql(transform.sql)
    except PySparkException as error:
        raise PipelineError(f"transform.sql: {_reason(error)}") from error


def _topic(spark: SparkSession, source: SourceSpec) -> DataFrame:
    return topic(
        spark,
        source.topic,
        bootstrap_servers=source.kafka.bootstrap_servers,
        schema=source.schema,
        key_schema=source.key_schema,
        starting=source.starting,
        kafka=dict(source.kafka.settings) or None,
        registry=None if source.registry is None else source.registry.given(),
        max_rows=source.max_rows,
        rejects=source.rejects,
        tombstones=source.tombstones,
        unknown_fields=source.unknown_fields,
        source_format=source.source_format,
        truncate=source.truncate,
    )


def plan_pipeline(spark: SparkSession, spec: PipelineSpec) -> Plan:
    """Plan a pipeline against brokers, target and checkpoint; changes nothing, runs nothing.

    Raises PipelineError, also for what Spark or a database answers.
    """
    about = About(
        spec.name, spec.sink.target, spec.delivery.checkpoint, failures=spec.sink.failures
    )
    with reported(about):
        return _plan(spark, spec)


def replay_pipeline(
    spark: SparkSession,
    spec: PipelineSpec,
    *,
    reasons: Sequence[str] = (),
    dead_letters: bool = False,
    dry_run: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Replayed:
    """Send the rejected rows of a pipeline through it once more; see `replay.replay`.

    Raises PipelineError.
    """
    about = About(
        spec.name, spec.sink.target, spec.delivery.checkpoint, failures=spec.sink.failures
    )

    def frame_of(raw: DataFrame, source: Source) -> DataFrame:
        return build_frame(spark, spec, rows_of(raw, source))

    with reported(about):
        asked = _specification(spark, spec)
        replay = Replay(asked, spec.sink.sink, frame_of, reasons, tell, dead_letters)
        return replay.run(dry_run=dry_run)


def _plan(spark: SparkSession, spec: PipelineSpec) -> Plan:
    return plan(_specification(spark, spec), spec.sink.sink)


def _specification(spark: SparkSession, spec: PipelineSpec) -> Specification:
    sink = spec.sink
    given = {name: getattr(sink, name) for name in options_of(type(sink)) if name in _ARGUMENTS}
    rebuild = functools.partial(build_frame, spark, spec) if spec.source.registry else None
    asked = given | _delivered(spec) | {"target": sink.target, "rebuild": rebuild}
    return Specification(build_frame(spark, spec), **asked)


def _delivered(spec: PipelineSpec) -> dict[str, Any]:
    """Return `[delivery]` as the arguments of a specification, whose names differ for two."""
    given = {name: getattr(spec.delivery, name) for name in options_of(DeliverySpec)}
    trigger = None if given["trigger"] is None else dict([given["trigger"]])
    return given | {"delivery": given.pop("guarantee"), "trigger": trigger, "name": spec.name}


def start_pipeline(
    spark: SparkSession, spec: PipelineSpec, run: Run | None = None
) -> StreamingQuery:
    """Plan a pipeline and start it; returns its query. Raises PipelineError.

    `run`: the run that is already reported to the group; the query continues it.
    """
    return start(plan_pipeline(spark, spec), run)


def _make_view(spark: SparkSession, table: TableSpec) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    reader = spark.read.format(table.format).options(**dict(table.options))
    try:
        if table.schema is not None:
            reader = reader.schema(table.schema)
        reader.load(table.path).createOrReplaceTempView(table.name)
    except (PySparkException, Py4JJavaError) as error:
        raise PipelineError(f"transform.tables.{table.name}: {_reason(error)}") from error


def _call(function: FunctionSpec, rows: DataFrame) -> DataFrame:
    """Run the function's file, then the function. Raises PipelineError with its line."""
    from pyspark.sql import DataFrame

    name = f"ottla_pipeline_{function.file.stem}"
    found = importlib.util.spec_from_file_location(name, function.file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    try:
        found.loader.exec_module(module)
        made = getattr(module, function.name)(rows)
    except (Exception, SystemExit) as error:  # sys.exit() would end a thread silently
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(function.file)
        ]
        line_of = f"{function.file}:{lines[-1]}" if lines else str(function.file)
        raise PipelineError(f"{line_of}: {type(error).__name__}: {_reason(error)}") from error
    if not isinstance(made, DataFrame):
        raise PipelineError(
            f"{function.file}: {function.name} returned {type(made).__name__}; return a DataFrame"
        )
    return made


def _reason(error: Any) -> str:
    """Spark's reason as one line: without its error class, position and plan."""
    cause = getattr(error, "java_exception", None)
    text = str(error) if cause is None else str(cause.getMessage())
    known = explain(text, "")
    if known:
        return known
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
