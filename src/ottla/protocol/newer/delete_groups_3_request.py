"""DeleteGroupsRequest, version 3.

Written by `python -m conformance.messages --write`.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.static.constants import EntityType


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsRequest:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[int] = 3
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[int] = 42
    groups_names: tuple[str, ...] = field(metadata={"kafka_type": "string"})
