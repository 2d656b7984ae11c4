"""The requests of streams groups (KIP-1071)."""

from __future__ import annotations

from typing import Any, Final

from conformance.authorization.given import Given, Kind
from ottla.protocol.messages import Messages

GROUP: Final = "streams"
MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAA"
REBALANCE_MS: Final = 60_000


def heartbeat(build: Messages, given: Given) -> Any:
    """Its changelog is missing, and needs Create."""
    changelog = build.TopicInfo(name=given.name("changelog"), topic_configs=())
    subtopology = build.Subtopology(
        subtopology_id="0",
        source_topics=(given.name("t"),),
        state_changelog_topics=(changelog,),
        repartition_source_topics=(),
        copartition_groups=(),
    )
    return build.StreamsGroupHeartbeatRequest(
        group_id=given.name(GROUP),
        member_id=MEMBER,
        member_epoch=0,
        rebalance_timeout=REBALANCE_MS,
        topology=build.Topology(epoch=0, subtopologies=(subtopology,)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="p",
    )


def describe(build: Messages, given: Given) -> Any:
    return build.StreamsGroupDescribeRequest(
        group_ids=(given.name(GROUP),), include_authorized_operations=True
    )


def describe_topology(build: Messages, given: Given) -> Any:
    description = build.TopologyDescription(subtopologies=(), global_stores=())
    return build.StreamsGroupTopologyDescriptionUpdateRequest(
        group_id=given.name(GROUP),
        member_id=MEMBER,
        topology_epoch=0,
        topology_description=description,
    )


STREAMS_KINDS: Final = (
    Kind(88, "", heartbeat),
    Kind(89, "", describe),
    Kind(93, "", describe_topology),
)
