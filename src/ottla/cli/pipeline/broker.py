"""The brokers of a pipeline file, checked before anything else: a wrong address fails at once."""

from __future__ import annotations

from ottla.cli.failures import Failed
from ottla.client.addresses import addresses, why_unreachable
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import ClusterState, look_up
from ottla.pipelines.spec.pipeline import PipelineSpec


def check_reachable(bootstrap_servers: str, table: str = "source") -> None:
    """Connect to one of the brokers; raises Failed with the reason when none can be reached.

    `table`: the table of the pipeline file that names them.
    """
    reason = why_unreachable(addresses(bootstrap_servers))
    if reason is not None:
        raise Failed(
            f"cannot reach a broker at {bootstrap_servers}: {reason}.",
            f"Is {table}.bootstrap_servers right? To start a broker: ottla serve",
        )


def look_up_topic(pipeline: PipelineSpec) -> ClusterState:
    """Return the state of the topic that a pipeline reads; look up the one that it writes, too.

    Raises Failed.
    """
    check_reachable(pipeline.source.kafka.bootstrap_servers)
    kafka, topic = pipeline.sink.written_topic or (None, "")
    if kafka is not None and kafka.bootstrap_servers != pipeline.source.kafka.bootstrap_servers:
        check_reachable(kafka.bootstrap_servers, "sink")
    try:
        found = look_up(pipeline.source.kafka, [pipeline.source.topic])
        if kafka is not None:
            look_up(kafka, [topic])
        return found
    except PipelineError as error:
        raise Failed(f"{pipeline.name}: {error}") from error
