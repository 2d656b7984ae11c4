"""A coordinator opens only the partitions that its broker leads."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ottla.coordinator.led_partitions import LedPartitions
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.partition_role import Role


class Held:
    """The partitions of this broker: it leads 0 and 2, and follows in 1."""

    def __init__(self) -> None:
        roles = (Role.LEADER, Role.FOLLOWER, Role.LEADER)
        self._partitions = [
            SimpleNamespace(index=index, role=role, leader_epoch=7)
            for index, role in enumerate(roles)
        ]

    def get(self, topic: str, index: int) -> SimpleNamespace | None:
        assert topic == "state"
        return self._partitions[index] if index < len(self._partitions) else None

    def of_topic(self, topic: str) -> list[SimpleNamespace]:
        assert topic == "state"
        return self._partitions


def test_the_indexes_that_this_broker_leads() -> None:
    assert list(LedPartitions(Held(), "state").indexes()) == [0, 2]  # type: ignore[arg-type]


@pytest.mark.parametrize("index", [1, 3])
def test_the_coordinator_of_another_partition_is_elsewhere(index: int) -> None:
    with pytest.raises(ApiError) as refused:
        LedPartitions(Held(), "state").open(index)  # type: ignore[arg-type]
    assert refused.value.code is ErrorCode.not_coordinator
