"""StreamsGroupDescribeResponse, version 1.

Written by `python -m conformance.messages --write`.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.static.constants import EntityType

from ottla.protocol.newer.error_code import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    key: str = field(metadata={"kafka_type": "string"})
    value: str = field(metadata={"kafka_type": "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    name: str = field(metadata={"kafka_type": "string"})
    partitions: int = field(metadata={"kafka_type": "int32"})
    replication_factor: int = field(metadata={"kafka_type": "int16"})
    topic_configs: tuple[KeyValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtopology:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    subtopology_id: str = field(metadata={"kafka_type": "string"})
    source_topics: tuple[str, ...] = field(metadata={"kafka_type": "string"})
    repartition_sink_topics: tuple[str, ...] = field(metadata={"kafka_type": "string"})
    state_changelog_topics: tuple[TopicInfo, ...]
    repartition_source_topics: tuple[TopicInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    epoch: int = field(metadata={"kafka_type": "int32"})
    subtopologies: tuple[Subtopology, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    host: str = field(metadata={"kafka_type": "string"})
    port: int = field(metadata={"kafka_type": "uint16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOffset:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    subtopology_id: str = field(metadata={"kafka_type": "string"})
    partition: int = field(metadata={"kafka_type": "int32"})
    offset: int = field(metadata={"kafka_type": "int64"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskIds:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    subtopology_id: str = field(metadata={"kafka_type": "string"})
    partitions: tuple[int, ...] = field(metadata={"kafka_type": "int32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    active_tasks: tuple[TaskIds, ...]
    standby_tasks: tuple[TaskIds, ...]
    warmup_tasks: tuple[TaskIds, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    member_id: str = field(metadata={"kafka_type": "string"})
    member_epoch: int = field(metadata={"kafka_type": "int32"})
    instance_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    rack_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    client_id: str = field(metadata={"kafka_type": "string"})
    client_host: str = field(metadata={"kafka_type": "string"})
    topology_epoch: int = field(metadata={"kafka_type": "int32"})
    process_id: str = field(metadata={"kafka_type": "string"})
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...]
    task_offsets: tuple[TaskOffset, ...]
    task_end_offsets: tuple[TaskOffset, ...]
    assignment: Assignment
    target_assignment: Assignment
    is_classic: bool = field(metadata={"kafka_type": "bool"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDescriptionNode:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    name: str = field(metadata={"kafka_type": "string"})
    node_type: int = field(metadata={"kafka_type": "int8"})
    source_topics: tuple[str, ...] = field(metadata={"kafka_type": "string"})
    sink_topic: str | None = field(metadata={"kafka_type": "string"}, default=None)
    stores: tuple[str, ...] = field(metadata={"kafka_type": "string"})
    successors: tuple[str, ...] = field(metadata={"kafka_type": "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDescriptionSubtopology:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    subtopology_id: str = field(metadata={"kafka_type": "string"})
    nodes: tuple[TopologyDescriptionNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDescriptionGlobalStore:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    source: TopologyDescriptionNode
    processor: TopologyDescriptionNode


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyDescription:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    subtopologies: tuple[TopologyDescriptionSubtopology, ...]
    global_stores: tuple[TopologyDescriptionGlobalStore, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    error_message: str | None = field(metadata={"kafka_type": "string"}, default=None)
    group_id: str = field(metadata={"kafka_type": "string"})
    group_state: str = field(metadata={"kafka_type": "string"})
    group_epoch: int = field(metadata={"kafka_type": "int32"})
    assignment_epoch: int = field(metadata={"kafka_type": "int32"})
    topology: Topology | None = None
    members: tuple[Member, ...]
    authorized_operations: int = field(metadata={"kafka_type": "int32"}, default=-2147483648)
    topology_description: TopologyDescription | None = None
    topology_description_status: int = field(metadata={"kafka_type": "int8"}, default=0)
    assignor_name: str | None = field(metadata={"kafka_type": "string"}, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupDescribeResponse:
    __type__: ClassVar = EntityType.response
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    throttle_time: int = field(metadata={"kafka_type": "timedelta_i32"})
    groups: tuple[DescribedGroup, ...]
