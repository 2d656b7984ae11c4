"""The brokers of a pipeline file, checked before anything else: a wrong address fails at once."""

from __future__ import annotations

from ottla.cli.client import addresses, why_unreachable
from ottla.cli.failures import Failed
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.file.specification import PipelineSpec
from ottla.pipelines.kafka.brokers import ClusterState, look_up


def check_reachable(bootstrap_servers: str) -> None:
    """Connect to one of the brokers; raises Failed with the reason when none can be reached."""
    reason = why_unreachable(addresses(bootstrap_servers))
    if reason is not None:
        raise Failed(
            f"cannot reach a broker at {bootstrap_servers}: {reason}.",
            "Is source.bootstrap_servers right? To start a broker: ottla serve",
        )


def look_up_topic(pipeline: PipelineSpec) -> ClusterState:
    """Return the state of the pipeline's topic. Raises Failed."""
    check_reachable(pipeline.source.kafka.bootstrap_servers)
    try:
        return look_up(pipeline.source.kafka, [pipeline.source.topic])
    except PipelineError as error:
        raise Failed(f"{pipeline.name}: {error}") from error
