"""TxnOffsetCommitResponse, version 6.

Written by `python -m conformance.messages --write`.
"""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from kio.static.constants import EntityType

from ottla.protocol.newer.error_code import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponsePartition:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 6
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 28
    partition_index: int = field(metadata={"kafka_type": "int32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponseTopic:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 6
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 28
    topic_id: UUID | None = field(metadata={"kafka_type": "uuid"})
    partitions: tuple[TxnOffsetCommitResponsePartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponse:
    __type__: ClassVar = EntityType.response
    __version__: ClassVar[int] = 6
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 28
    throttle_time: int = field(metadata={"kafka_type": "timedelta_i32"})
    topics: tuple[TxnOffsetCommitResponseTopic, ...]
