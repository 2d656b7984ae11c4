"""StreamsGroupTopologyDescriptionUpdateResponse, version 0.

Written by `python -m conformance.messages --write`.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.static.constants import EntityType

from ottla.protocol.newer.error_code import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupTopologyDescriptionUpdateResponse:
    __type__: ClassVar = EntityType.response
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 93
    throttle_time: int = field(metadata={"kafka_type": "timedelta_i32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    error_message: str | None = field(metadata={"kafka_type": "string"}, default=None)
