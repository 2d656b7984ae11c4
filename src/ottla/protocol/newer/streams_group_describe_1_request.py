"""StreamsGroupDescribeRequest, version 1.

Written by `python -m conformance.messages --write`.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.static.constants import EntityType


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupDescribeRequest:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 89
    group_ids: tuple[str, ...] = field(metadata={"kafka_type": "string"})
    include_authorized_operations: bool = field(metadata={"kafka_type": "bool"})
    include_topology_description: bool = field(metadata={"kafka_type": "bool"}, default=False)
