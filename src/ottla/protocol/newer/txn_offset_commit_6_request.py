"""TxnOffsetCommitRequest, version 6.

Written by `python -m conformance.messages --write`.
"""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from kio.static.constants import EntityType


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequestPartition:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 6
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 28
    partition_index: int = field(metadata={"kafka_type": "int32"})
    committed_offset: int = field(metadata={"kafka_type": "int64"})
    committed_leader_epoch: int = field(metadata={"kafka_type": "int32"}, default=-1)
    committed_metadata: str | None = field(metadata={"kafka_type": "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequestTopic:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 6
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 28
    topic_id: UUID | None = field(metadata={"kafka_type": "uuid"})
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequest:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[int] = 6
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 28
    transactional_id: str = field(metadata={"kafka_type": "string"})
    group_id: str = field(metadata={"kafka_type": "string"})
    producer_id: int = field(metadata={"kafka_type": "int64"})
    producer_epoch: int = field(metadata={"kafka_type": "int16"})
    generation_id_or_member_epoch: int = field(metadata={"kafka_type": "int32"}, default=-1)
    member_id: str = field(metadata={"kafka_type": "string"}, default="")
    group_instance_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...]
