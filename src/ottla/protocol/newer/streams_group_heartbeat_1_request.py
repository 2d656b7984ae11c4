"""StreamsGroupHeartbeatRequest, version 1.

Written by `python -m conformance.messages --write`.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.static.constants import EntityType


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 88
    key: str = field(metadata={"kafka_type": "string"})
    value: str = field(metadata={"kafka_type": "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 88
    name: str = field(metadata={"kafka_type": "string"})
    partitions: int = field(metadata={"kafka_type": "int32"})
    replication_factor: int = field(metadata={"kafka_type": "int16"})
    topic_configs: tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopartitionGroup:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 88
    source_topics: tuple[int, ...] = field(metadata={"kafka_type": "int16"})
    source_topic_regex: tuple[int, ...] = field(metadata={"kafka_type": "int16"})
    repartition_source_topics: tuple[int, ...] = field(metadata={"kafka_type": "int16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtopology:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 88
    subtopology_id: str = field(metadata={"kafka_type": "string"})
    source_topics: tuple[str, ...] = field(metadata={"kafka_type": "string"})
    source_topic_regex: tuple[str, ...] = field(metadata={"kafka_type": "string"})
    state_changelog_topics: tuple[TopicInfo, ...]
    repartition_sink_topics: tuple[str, ...] = field(metadata={"kafka_type": "string"})
    repartition_source_topics: tuple[TopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 88
    epoch: int = field(metadata={"kafka_type": "int32"})
    subtopologies: tuple[Subtopology, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskIds:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 88
    subtopology_id: str = field(metadata={"kafka_type": "string"})
    partitions: tuple[int, ...] = field(metadata={"kafka_type": "int32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 88
    host: str = field(metadata={"kafka_type": "string"})
    port: int = field(metadata={"kafka_type": "uint16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOffset:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 88
    subtopology_id: str = field(metadata={"kafka_type": "string"})
    partition: int = field(metadata={"kafka_type": "int32"})
    offset: int = field(metadata={"kafka_type": "int64"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupHeartbeatRequest:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 88
    group_id: str = field(metadata={"kafka_type": "string"})
    member_id: str = field(metadata={"kafka_type": "string"})
    member_epoch: int = field(metadata={"kafka_type": "int32"})
    endpoint_information_epoch: int = field(metadata={"kafka_type": "int32"})
    instance_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    rack_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    rebalance_timeout: int = field(metadata={"kafka_type": "timedelta_i32"}, default=-1)
    topology: Topology | None = None
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    process_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] | None = None
    task_offsets: tuple[TaskOffset, ...] | None = None
    task_end_offsets: tuple[TaskOffset, ...] | None = None
    shutdown_application: bool = field(metadata={"kafka_type": "bool"}, default=False)
