"""An operator of a simulated cluster: sends admin requests to the first broker that answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import Any, Final

from ottla.controller.draining import DrainingError, drained
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from simulation.connection import METADATA, Connections, NoAnswerError
from simulation.violation import Violation

CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
DELETE_RECORDS: Final = 21
CREATE_PARTITIONS: Final = 37
DELETE_GROUPS: Final = 42
ELECT_LEADERS: Final = 43
INCREMENTAL_ALTER_CONFIGS: Final = 44
ALTER_PARTITION_REASSIGNMENTS: Final = 45
_OF_TOPIC: Final = 2
_OF_GROUP: Final = 32
_SET: Final = 0
TRIES: Final = 200
PAUSE_S: Final = 0.2


class Operator:
    """Each call tries brokers in turn until one responds; an error response is not retried."""

    def __init__(
        self,
        addresses: Mapping[int, tuple[str, int]],
        random: Random,
        note: Callable[[str], None],
    ) -> None:
        self._connections = Connections("operator", addresses)
        self._brokers = list(addresses)
        self._random = random
        self._note = note
        self.unanswered: set[str] = set()
        """Topics of which a request to create or delete them got no answer. It may lie in a
        connection that is cut, and be carried out after the next one was answered: Kafka's clients
        ask another broker, too, and learn from its answer only what is so at that moment."""

    async def create(self, topic: str, partitions: int, factor: int, **config: str) -> None:
        """Create a topic that may already exist; in setting names underscores stand for dots.
        Raises Violation if it never succeeds.
        """
        await self._create(
            config, name=topic, num_partitions=partitions, replication_factor=factor, assignments=()
        )

    async def create_on(self, replicas: Sequence[int], topic: str, **config: str) -> None:
        """The same with one partition, which is on these brokers."""
        build = messages_of(CREATE_TOPICS, 7, "request")
        assignment = build.CreatableReplicaAssignment(partition_index=0, broker_ids=tuple(replicas))
        await self._create(
            config,
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=(assignment,),
        )

    async def _create(self, config: Mapping[str, str], **wanted: Any) -> None:
        build = messages_of(CREATE_TOPICS, 7, "request")
        configs = tuple(
            build.CreatableTopicConfig(name=name.replace("_", "."), value=value)
            for name, value in config.items()
        )
        topic = build.CreatableTopic(**wanted, configs=configs)
        request = build.CreateTopicsRequest(topics=(topic,), timeout=1_000)
        for _ in range(TRIES):
            answer = await self._ask(request, topic.name)
            if answer is not None:
                code = ErrorCode(answer.topics[0].error_code)
                if code in (ErrorCode.none, ErrorCode.topic_already_exists):
                    return
            await asyncio.sleep(PAUSE_S)
        raise Violation(f"topic {topic.name} could not be created")

    async def set_config(self, topic: str, **config: str) -> None:
        """Change settings of a topic; the request may fail or be lost."""
        build = messages_of(INCREMENTAL_ALTER_CONFIGS, 1, "request")
        wanted = build.AlterConfigsResource(
            resource_type=_OF_TOPIC,
            resource_name=topic,
            configs=tuple(
                build.AlterableConfig(
                    name=name.replace("_", "."), config_operation=_SET, value=value
                )
                for name, value in config.items()
            ),
        )
        request = build.IncrementalAlterConfigsRequest(resources=(wanted,), validate_only=False)
        answer = await self._ask(request)
        if answer is not None:
            code = ErrorCode(answer.responses[0].error_code)
            self._note(f"operator: settings of {topic}: {code.name}")

    async def set_group_config(self, group: str, **config: str) -> None:
        """Change settings of a group (KIP-848). Raises Violation if it never succeeds."""
        build = messages_of(INCREMENTAL_ALTER_CONFIGS, 1, "request")
        wanted = build.AlterConfigsResource(
            resource_type=_OF_GROUP,
            resource_name=group,
            configs=tuple(
                build.AlterableConfig(
                    name=name.replace("_", "."), config_operation=_SET, value=value
                )
                for name, value in config.items()
            ),
        )
        request = build.IncrementalAlterConfigsRequest(resources=(wanted,), validate_only=False)
        for _ in range(TRIES):
            answer = await self._ask(request)
            if answer is not None and answer.responses[0].error_code is ErrorCode.none:
                return
            await asyncio.sleep(PAUSE_S)
        raise Violation(f"settings of group {group} could not be changed")

    async def delete(self, topic: str) -> ErrorCode | None:
        """Delete a topic; returns None if the request was lost."""
        build = messages_of(DELETE_TOPICS, 5, "request")
        answer = await self._ask(
            build.DeleteTopicsRequest(topic_names=(topic,), timeout=1_000), topic
        )
        if answer is None:
            return None
        code = ErrorCode(answer.responses[0].error_code)
        self._note(f"operator: delete {topic}: {code.name}")
        return code

    async def delete_group(self, group: str) -> None:
        """Delete a group without members; the request may fail or be lost."""
        build = messages_of(DELETE_GROUPS, 2, "request")
        request = build.DeleteGroupsRequest(groups_names=(group,))
        try:
            broker = await self._connections.coordinator(group)
            answer = await self._connections.ask(broker, request)
        except NoAnswerError:
            return
        finally:
            self._connections.forget_coordinator(group)
        code = ErrorCode(answer.results[0].error_code)
        self._note(f"operator: group {group} deleted: {code.name}")

    async def delete_records(self, topic: str, index: int, before: int) -> None:
        """Delete the records of a partition before an offset; the request may fail or be lost."""
        build = messages_of(DELETE_RECORDS, 2, "request")
        partition = build.DeleteRecordsPartition(partition_index=index, offset=before)
        wanted = build.DeleteRecordsTopic(name=topic, partitions=(partition,))
        request = build.DeleteRecordsRequest(topics=(wanted,), timeout=500)
        try:
            leader = await self._connections.leader(topic, index)
            answer = await self._connections.ask(leader, request)
        except NoAnswerError:
            return
        finally:
            self._connections.forget_leader(topic, index)
        code = ErrorCode(answer.topics[0].partitions[0].error_code)
        self._note(f"operator: records of {topic}-{index} before {before} deleted: {code.name}")

    async def add_partitions(self, topic: str, count: int) -> bool:
        """Give the topic `count` partitions; False if the request failed or was lost."""
        build = messages_of(CREATE_PARTITIONS, 3, "request")
        wanted = build.CreatePartitionsTopic(name=topic, count=count, assignments=None)
        request = build.CreatePartitionsRequest(
            topics=(wanted,), timeout=1_000, validate_only=False
        )
        answer = await self._ask(request)
        if answer is None:
            return False
        code = ErrorCode(answer.results[0].error_code)
        self._note(f"operator: {topic} with {count} partitions: {code.name}")
        return code is ErrorCode.none

    async def elect(
        self, only: Mapping[str, Collection[int]] | None = None, *, unclean: bool = False
    ) -> None:
        """Elect preferred leaders, or uncleanly for partitions without one; None: for all."""
        build = messages_of(ELECT_LEADERS, 2, "request")
        wanted = None
        if only is not None:
            wanted = tuple(
                build.TopicPartitions(topic=topic, partitions=tuple(indexes))
                for topic, indexes in only.items()
            )
        request = build.ElectLeadersRequest(
            election_type=1 if unclean else 0, topic_partitions=wanted, timeout=1_000
        )
        if await self._ask(request) is not None:
            self._note(f"operator: {'unclean' if unclean else 'preferred'} leaders elected")

    async def reassign(self, topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
        """Move partitions to these brokers."""
        build = messages_of(ALTER_PARTITION_REASSIGNMENTS, 0, "request")
        wanted = build.ReassignableTopic(
            name=topic,
            partitions=tuple(
                build.ReassignablePartition(partition_index=index, replicas=tuple(each))
                for index, each in replicas.items()
            ),
        )
        request = build.AlterPartitionReassignmentsRequest(topics=(wanted,), timeout=1_000)
        answer = await self._ask(request)
        if answer is not None:
            self._note(
                f"operator: {topic} to {dict(replicas)}: {ErrorCode(answer.error_code).name}"
            )

    async def drain(self, broker: int, topics: Sequence[str]) -> None:
        """Move a broker's replicas of these topics to the others, like `ottla cluster drain`."""
        build = messages_of(METADATA, 9, "request")
        request = build.MetadataRequest(
            topics=tuple(build.MetadataRequestTopic(name=name) for name in topics),
            allow_auto_topic_creation=False,
        )
        answer = await self._ask(request)
        if answer is None:
            return
        racks = {each.node_id: each.rack for each in answer.brokers}
        assignments = {
            topic.name: [
                each.replica_nodes
                for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            ]
            for topic in answer.topics
            if ErrorCode(topic.error_code) is ErrorCode.none
        }
        try:
            targets = drained(broker, racks, assignments)
        except DrainingError as error:
            self._note(f"operator: {error}")
            return
        for topic, replicas in targets.items():
            await self.reassign(topic, replicas)

    async def check_forwarding(self, topic: str) -> None:
        """Check in a healthy cluster that every broker forwards requests to the controller. Raises
        NoAnswerError, and Violation for a wrong answer.
        """
        build = messages_of(DELETE_TOPICS, 5, "request")
        missing = f"no-{topic}"
        request = build.DeleteTopicsRequest(topic_names=(missing,), timeout=1_000)
        for broker in self._brokers:
            answer = await self._connections.ask(broker, request, 10_000)
            code = ErrorCode(answer.responses[0].error_code)
            if code is not ErrorCode.unknown_topic_or_partition:
                raise Violation(f"broker {broker} forwarded a request, and was told {code.name}")

    async def _ask(self, request: Any, topic: str | None = None) -> Any:
        """`topic`: which one it creates or deletes."""
        for broker in self._random.sample(self._brokers, len(self._brokers)):
            try:
                return await self._connections.ask(broker, request)
            except NoAnswerError:
                if topic is not None:
                    self.unanswered.add(topic)
        return None
