"""A broker's groups behind the request handlers: requests and responses go through the codec."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from importlib import import_module
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from tests.groups.share.states import States
from tests.turns import most_calls_at_once, turns_of_others

from ottla.config.listener import Endpoint
from ottla.controller.features import DEFAULT_LEVELS
from ottla.controller.image import (
    BrokerAppeared,
    BrokerImage,
    ClusterImage,
    FeaturesChanged,
    PartitionState,
    TopicCreated,
    TopicImage,
)
from ottla.controller.plan import DONE, Outcome
from ottla.controller.topics import NewTopic
from ottla.coordinator.coordinator_log import KeyAndValue, LogMarker, LogRecord, Verification
from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.end_offsets import EndOffsets
from ottla.coordinator.group_coordinator import GroupCoordinator, group_kind
from ottla.groups.settings import GroupSettings
from ottla.groups.shard import GroupShard
from ottla.groups.share.administration import states_answered
from ottla.groups.streams.step import FirstAssignmentDue
from ottla.network.client_session import ClientSession
from ottla.network.request_context import RequestContext
from ottla.node.group_topics import topics_of
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import (
    read_request_body,
    read_request_header,
    read_response,
    write_request,
    write_response,
)
from ottla.protocol.messages import messages_of
from ottla.shards.step import ProducerEpoch, TransactionMarker

TOPIC_ID = UUID(int=7)
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


class MemoryLog:
    leader_epoch = 0

    def __init__(self) -> None:
        self.records: list[LogRecord | LogMarker] = []

    @property
    def high_watermark(self) -> int:
        return len(self.records)

    max_batch_bytes = 1 << 20

    def check(self) -> None:
        pass

    def begin_verification(self, producer: ProducerEpoch, *, version_2: bool) -> Verification:
        return Verification("guard", True)

    def append(
        self,
        records: Sequence[KeyAndValue],
        now_ms: int,
        producer: ProducerEpoch | None,
        guard: object | None = None,
    ) -> int:
        for key, value in records:
            self.records.append(LogRecord(len(self.records), key, value, now_ms, producer))
        return len(self.records) - 1

    def append_marker(self, marker: TransactionMarker, now_ms: int) -> int:
        self.records.append(LogMarker(len(self.records), marker))
        return len(self.records) - 1

    def read_all(self) -> Iterator[LogRecord | LogMarker]:
        yield from self.records

    async def committed(self, offset: int) -> bool:
        return True


def topic_image(name: str, topic_id: UUID, partitions: int) -> TopicImage:
    return TopicImage(name, topic_id, (PartitionState(1, 0, (1,), (1,), 0),) * partitions, {})


class GroupApi:
    """Topic `t` has two partitions; the client is "client" and comes from 127.0.0.1."""

    def __init__(self) -> None:
        self.image = ClusterImage("cluster")
        self.image.apply(BrokerAppeared(BrokerImage(1, (Endpoint("PLAINTEXT", "here", 9092),))))
        self.image.apply(TopicCreated(topic_image("t", TOPIC_ID, 2)))
        self.image.apply(FeaturesChanged(DEFAULT_LEVELS, 0))
        self.logs: dict[int, MemoryLog] = {}
        self.ensured = DONE
        self.turns = 0
        """That others had while the last handler ran."""
        self.most_calls = 0
        """That the last handler made in one go."""
        self.share_states = States()
        self.created: list[NewTopic] = []
        """Internal topics that streams groups need."""
        self.creation_errors: list[tuple[str, str]] = []
        logs: Any = self
        self.runtime = CoordinatorRuntime(
            group_kind(
                GroupSettings(min_session_timeout_ms=1), topics=lambda: topics_of(self.image)
            ),
            logs,
            SimpleNamespace(now_ms=lambda: 1_000, monotonic_ms=lambda: 1_000),
        )
        self.groups = GroupCoordinator(
            self.runtime,
            lambda: 3,
            random=Random(1),
            topics=lambda: topics_of(self.image),
            run_long=asyncio.to_thread,
            share_states=self.share_states,
            share_ends=EndOffsets(lambda topic, index: index if index < 2 else None, self.end_of),
        )
        self.node: Any = SimpleNamespace(
            groups=self.groups,
            authorization=None,
            image=self.image,
            config=SimpleNamespace(id=1),
            controller=self,
            topic_creation=self,
        )

    @staticmethod
    def topic_created(name: str, partitions: int, topic_id: int = 9) -> TopicCreated:
        """For `image`."""
        return TopicCreated(topic_image(name, UUID(int=topic_id), partitions))

    async def end_of(self, leader: int, request: Any) -> Any:
        """Partition 0 ends at 100; the leader of partition 1 has moved."""
        build = messages_of(2, 7)
        codes = {0: ErrorCode.none, 1: ErrorCode.not_leader_or_follower}
        return build.ListOffsetsResponse(
            topics=tuple(
                build.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        build.ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            error_code=codes[each.partition_index],
                            offset=100,
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def open(self, index: int) -> MemoryLog:
        """Replaces the partitions that this broker leads."""
        return self.logs.setdefault(index, MemoryLog())

    def indexes(self) -> range:
        return range(3)

    @property
    def shard(self) -> GroupShard:
        """The partition of group g, once it was requested."""
        return self.runtime._partitions[self.groups.partition_for("g")].shard

    async def ensure_offsets_topic(self) -> Outcome:
        """Replaces a request to the controller."""
        if not self.ensured.failed:
            self.image.apply(TopicCreated(topic_image("__consumer_offsets", UUID(int=8), 3)))
        return self.ensured

    async def ask(self, name: str, version: int, /, **fields: Any) -> Any:
        """Sends a request as a client of this version would; fields it lacks are left out."""
        module = import_module(f"ottla.api.{name}")
        build = messages_of(module.KEY, version, "request")
        title = "".join(word.capitalize() for word in name.split("_"))
        message = getattr(build, f"{title}Request")(**fields)
        frame = memoryview(write_request(message, 5, "client"))[4:]
        request = read_request_body(read_request_header(frame), frame)
        answers = messages_of(module.KEY, version)
        session = ClientSession(1, "127.0.0.1", "PLAINTEXT", "there", 9093)
        context = RequestContext(self.node, session, version, "client", answers)
        counted = turns_of_others(module.handle(request, context))
        (answer, self.turns), self.most_calls = await most_calls_at_once(counted)
        parts = write_response(answer, 5)
        sent = memoryview(b"".join(bytes(part) for part in parts))[4:]
        return read_response(module.KEY, version, sent)[1]

    def struct(self, name: str, key: int, version: int, /, **fields: Any) -> Any:
        """A struct inside a request of this version."""
        return getattr(messages_of(key, version, "request"), name)(**fields)

    async def join(self, version: int, member_id: str = "", **fields: Any) -> Any:
        protocol = self.struct(
            "JoinGroupRequestProtocol", 11, version, name="range", metadata=SUBSCRIPTION
        )
        request = {
            "group_id": "g",
            "session_timeout": 10_000,
            "rebalance_timeout": 10_000,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": (protocol,),
        }
        return await self.ask("join_group", version, **(request | fields))

    async def beat(self, version: int = 1, **fields: Any) -> Any:
        """A member's heartbeat; it joins unless it says more."""
        request = {
            "group_id": "g",
            "member_id": "m",
            "member_epoch": 0,
            "rebalance_timeout": 60_000,
            "subscribed_topic_names": ("t",),
            "topic_partitions": (),
        }
        return await self.ask("consumer_group_heartbeat", version, **(request | fields))

    async def share_beat(self, **fields: Any) -> Any:
        """The same of a share group's member."""
        request = {
            "group_id": "g",
            "member_id": "m",
            "member_epoch": 0,
            "rack_id": None,
            "subscribed_topic_names": ("t",),
        }
        return await self.ask("share_group_heartbeat", 1, **(request | fields))

    async def begin_share_states(self, group: str, partitions: Any) -> None:
        """The share coordinator has begun their state, and the next target may be made."""
        await self.runtime.decide(
            self.groups.partition_for(group),
            lambda shard, step: shard.share_decision(
                group,
                step,
                lambda share, topics, inner: states_answered(
                    share.known(group), partitions, {}, topics, inner
                ),
            ),
        )
        self.shard.share.groups[group].target_timestamp_ms = 0

    @property
    def streams(self) -> Any:
        """Replaces the creation of topics for streams groups."""
        return SimpleNamespace(
            create=lambda topics, keep_errors_ms: self.created.extend(topics),
            errors=lambda names: self.creation_errors,
        )

    def topology(self, *topics: str, changelogs: Sequence[str] = (), epoch: int = 0) -> Any:
        """Of a streams group's heartbeat: one subtopology."""
        subtopology = self.struct(
            "Subtopology",
            88,
            0,
            subtopology_id="0",
            source_topics=topics,
            state_changelog_topics=tuple(
                self.struct(
                    "TopicInfo", 88, 0, name=name, replication_factor=2,
                    topic_configs=(self.struct("KeyValue", 88, 0, key="k", value="v"),),
                )
                for name in changelogs
            ),
            repartition_source_topics=(),
            copartition_groups=(),
        )  # fmt: skip
        return self.struct("Topology", 88, 0, epoch=epoch, subtopologies=(subtopology,))

    async def streams_beat(self, version: int = 0, **fields: Any) -> Any:
        """A heartbeat of a streams group's member; it joins unless it says more."""
        request = {
            "group_id": "g",
            "member_id": "m",
            "member_epoch": 0,
            "rebalance_timeout": 60_000,
            "topology": self.topology("t"),
            "active_tasks": (),
            "standby_tasks": (),
            "warmup_tasks": (),
            "process_id": "p",
        }
        return await self.ask("streams_group_heartbeat", version, **(request | fields))

    async def streams_assigned(self) -> None:
        """The group has waited for members long enough."""
        event = FirstAssignmentDue("g")
        await self.runtime.decide(
            self.groups.partition_for("g"), lambda shard, step: shard.expired(event, step)
        )

    async def sync(self, version: int, member_id: str, assignment: bytes, **fields: Any) -> Any:
        each = self.struct(
            "SyncGroupRequestAssignment", 14, version, member_id=member_id, assignment=assignment
        )
        request = {
            "group_id": "g",
            "generation_id": 1,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": (each,),
        }
        return await self.ask("sync_group", version, **(request | fields))

    async def stable(self, **fields: Any) -> str:
        """One member in generation 1; the answer is its id."""
        joined = await self.join(9, group_instance_id="i", **fields)
        await self.sync(5, joined.member_id, b"own", group_instance_id="i", **fields)
        found: str = joined.member_id
        return found

    async def commit(self, version: int, offset: int, **fields: Any) -> Any:
        """Commits `offset` in partitions 0 and 5 of topic t, of which 5 does not exist."""
        partitions = tuple(
            self.struct(
                "OffsetCommitRequestPartition",
                8,
                version,
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=3,
                committed_metadata="note",
            )
            for index in (0, 5)
        )
        topic = self.struct(
            "OffsetCommitRequestTopic", 8, version,
            name="t", topic_id=TOPIC_ID, partitions=partitions,
        )  # fmt: skip
        request = {
            "group_id": "g",
            "generation_id_or_member_epoch": -1,
            "retention_time": -1,
            "topics": (topic,),
        }
        return await self.ask("offset_commit", version, **(request | fields))


@pytest.fixture
async def api() -> AsyncIterator[GroupApi]:
    made = GroupApi()
    yield made
    made.runtime.close()
    await asyncio.sleep(0)
