"""A member of a streams group that joins and processes nothing."""

from __future__ import annotations

import time
import uuid
from typing import Any

from ottla.client.client import Client
from ottla.client.coordinators import Coordinated
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode


class Member:
    """Joins a streams group, and sends heartbeats when it is asked to.

    Its application counts the records of a topic by another key: a repartition topic and a
    changelog, whose names begin with the group's.
    """

    def __init__(self, client: Client, group: str, source: str) -> None:
        self.client = client
        self.group = group
        self.source = source
        self.member_id = str(uuid.uuid4())
        self.epoch = 0
        self.active: dict[str, tuple[int, ...]] = {}
        self.statuses: list[int] = []

    def _topology(self, messages: Any) -> Any:
        def info(name: str) -> Any:
            return messages.TopicInfo(name=f"{self.group}-{name}", topic_configs=())

        return messages.Topology(
            epoch=0,
            subtopologies=(
                messages.Subtopology(
                    subtopology_id="0",
                    source_topics=(self.source,),
                    state_changelog_topics=(),
                    repartition_sink_topics=(f"{self.group}-counts-repartition",),
                    repartition_source_topics=(),
                    copartition_groups=(),
                ),
                messages.Subtopology(
                    subtopology_id="1",
                    state_changelog_topics=(info("counts-changelog"),),
                    repartition_source_topics=(info("counts-repartition"),),
                    copartition_groups=(),
                ),
            ),
        )

    def beat(self) -> None:
        """Says what it has, and takes over what it is told."""

        def build(messages: Any) -> Any:
            joins = self.epoch == 0
            tasks = tuple(
                messages.TaskIds(subtopology_id=name, partitions=numbers)
                for name, numbers in self.active.items()
            )
            return messages.StreamsGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=self.epoch,
                rebalance_timeout=60_000 if joins else -1,
                topology=self._topology(messages) if joins else None,
                active_tasks=tasks,
                standby_tasks=(),
                warmup_tasks=(),
                process_id=self.member_id if joins else None,
            )

        asked = self.client.ask_coordinators(
            Coordinated.GROUP,
            [self.group],
            lambda _: Question(88, 0, build),
            lambda response: [(self.group, response)],
        )
        answer = asked[self.group][1]
        assert answer.error_code is ErrorCode.none, answer
        self.epoch = answer.member_epoch
        self.statuses = [each.status_code for each in answer.status]
        if answer.active_tasks is not None:
            self.active = {each.subtopology_id: each.partitions for each in answer.active_tasks}

    def join(self, tasks: int) -> None:
        """Until it has so many tasks."""
        until_s = time.monotonic() + 30
        while sum(map(len, self.active.values())) != tasks:
            assert time.monotonic() < until_s, f"has {self.active}, status {self.statuses}"
            self.beat()
            time.sleep(0.05)

    def describe_topology(self) -> None:
        """Of its two nodes, as an application does that is asked to."""

        def build(messages: Any) -> Any:
            def node(name: str, kind: int, **fields: Any) -> Any:
                return messages.TopologyDescriptionNode(name=name, node_type=kind, **fields)

            part = messages.TopologyDescriptionSubtopology(
                subtopology_id="0",
                nodes=(
                    node("in", 1, source_topics=(self.source,), successors=("count",)),
                    node("count", 2, stores=("counts",)),
                ),
            )
            return messages.StreamsGroupTopologyDescriptionUpdateRequest(
                group_id=self.group,
                member_id=self.member_id,
                topology_epoch=0,
                topology_description=messages.TopologyDescription(subtopologies=(part,)),
            )

        asked = self.client.ask_coordinators(
            Coordinated.GROUP,
            [self.group],
            lambda _: Question(93, 0, build),
            lambda response: [(self.group, response)],
        )
        assert asked[self.group][1].error_code is ErrorCode.none

    def leave(self) -> None:
        self.epoch = -1
        self.beat()
