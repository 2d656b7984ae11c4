"""ApiVersionsResponse, version 5.

Written by `python -m conformance.messages --write`.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.static.constants import EntityType

from ottla.protocol.newer.error_code import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersion:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 5
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 18
    api_key: int = field(metadata={"kafka_type": "int16"})
    min_version: int = field(metadata={"kafka_type": "int16"})
    max_version: int = field(metadata={"kafka_type": "int16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedFeatureKey:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 5
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 18
    name: str = field(metadata={"kafka_type": "string"})
    min_version: int = field(metadata={"kafka_type": "int16"})
    max_version: int = field(metadata={"kafka_type": "int16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizedFeatureKey:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[int] = 5
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 18
    name: str = field(metadata={"kafka_type": "string"})
    max_version_level: int = field(metadata={"kafka_type": "int16"})
    min_version_level: int = field(metadata={"kafka_type": "int16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse:
    __type__: ClassVar = EntityType.response
    __version__: ClassVar[int] = 5
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 18
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    api_keys: tuple[ApiVersion, ...]
    throttle_time: int = field(metadata={"kafka_type": "timedelta_i32"})
    supported_features: tuple[SupportedFeatureKey, ...] = field(metadata={"tag": 0}, default=())
    finalized_features_epoch: int = field(metadata={"kafka_type": "int64", "tag": 1}, default=-1)
    finalized_features: tuple[FinalizedFeatureKey, ...] = field(metadata={"tag": 2}, default=())
    zk_migration_ready: bool = field(metadata={"kafka_type": "bool", "tag": 3}, default=False)
