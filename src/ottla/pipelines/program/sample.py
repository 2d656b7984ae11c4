"""The newest records of a pipeline's topic, parsed before Spark starts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ottla.pipelines.errors import MostlyRejectedError
from ottla.pipelines.kafka.brokers import ClusterState
from ottla.pipelines.locations import shown_location
from ottla.pipelines.progress.group import GroupError
from ottla.pipelines.progress.status import read_status
from ottla.pipelines.rejects import first_batch
from ottla.pipelines.source.judge import Sample
from ottla.pipelines.source.newest import MAX_RECORDS, parse_newest
from ottla.pipelines.source.words import MAX_SHOWN
from ottla.pipelines.spec.pipeline import PipelineSpec

_SCHEME: Final = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:/")


def read_sample(
    pipeline: PipelineSpec, cluster: ClusterState, limit: int = MAX_RECORDS
) -> Sample | str:
    """Return what becomes of the newest records; a text says why they are not checked."""
    source = pipeline.source
    schema = "registry" if source.registry is not None and source.schema is None else source.schema
    topic = cluster.topics[source.topic]
    return parse_newest(
        source.kafka,
        topic,
        schema,
        source.key_schema,
        source.unknown_fields,
        limit,
        source_format=source.source_format,
    )


def format_sample(sample: Sample | str) -> str:
    """Return it as a line without a full stop."""
    if isinstance(sample, str):
        return f"the newest records were not checked: {sample}"
    if not sample.records:
        return "there is no record to check"
    if not sample.unknown:
        return _format_fit(sample)
    names = ", ".join(sample.unknown_fields[:MAX_SHOWN])
    have = "has" if sample.unknown == 1 else "have"
    return f"{_format_fit(sample)}; {sample.unknown} {have} fields that the schema lacks: {names}"


def _format_fit(sample: Sample) -> str:
    newest = f"newest {sample.records:,} records" if sample.records > 1 else "newest record"
    unchecked = sample.not_checked
    left = f" ({unchecked} can only be checked by Spark)" if unchecked else ""
    if not sample.rejected:
        if not unchecked:
            return f"the {newest} {'fits' if sample.records == 1 else 'fit'} the schema"
        return f"{sample.parsed} of the {newest} fit the schema{left}"
    if sample.records == 1:
        said = f"the {newest} does not fit the schema"
    elif sample.rejected == sample.records:
        said = f"none of the {newest} fits the schema"
    else:
        verb = "does" if sample.rejected == 1 else "do"
        said = f"{sample.rejected} of the {newest} {verb} not fit the schema{left}"
    if not sample.reasons:
        return said
    reason, count = sample.reasons[0]
    most = f", {count} of them for this reason" if count < sample.rejected else ""
    return f"{said}{most}: {reason}"


def is_mostly_rejected(pipeline: PipelineSpec, sample: Sample) -> bool:
    """Whether a new query of this pipeline stops where its first batch is like the sample."""
    stops = pipeline.delivery.on_rejects == "stop" and pipeline.source.rejects != "keep"
    return stops and sample.rejected * 2 > sample.records


def check_newest(pipeline: PipelineSpec, cluster: ClusterState) -> str | None:
    """Return the line to show before a run, None where no record is rejected.

    Raises MostlyRejectedError where the first batch of the run would stop it: Spark does not have
    to start for that. The records are those that the first batch would look at.
    """
    sample = read_sample(pipeline, cluster)
    if isinstance(sample, str) or not (sample.rejected or sample.unknown):
        return None
    if is_mostly_rejected(pipeline, sample) and begins_with_newest(pipeline):
        first = read_sample(pipeline, cluster, first_batch.MAX_RECORDS)
        if isinstance(first, Sample) and is_mostly_rejected(pipeline, first):
            said = format_sample(first)
            raise MostlyRejectedError(
                f"{said[0].upper()}{said[1:]}. Spark was not started, and nothing is written: "
                "mend the schema, or write on_rejects = 'continue' to write the others"
            )
    return format_sample(sample)


def begins_with_newest(pipeline: PipelineSpec) -> bool:
    """Whether the run's first batch is the first of its checkpoint, and has all of the topic.

    Only Spark can read a checkpoint that is not on this machine. The group knows of batches that
    were delivered from elsewhere.
    """
    delivery, source = pipeline.delivery, pipeline.source
    if source.starting != "earliest" or source.max_rows is not None:
        return False
    if _SCHEME.match(delivery.checkpoint):
        return False
    if any(Path(shown_location(delivery.checkpoint), "offsets").glob("[0-9]*")):
        return False
    try:
        status = read_status(source.kafka.for_librdkafka(), delivery.group, with_lag=False)
    except GroupError:
        return False
    return status.metadata is None or status.metadata.batch is None
