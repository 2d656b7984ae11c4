"""Which leader a simulated client asks, when brokers know of different ones."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from simulation.connection import Connections, NoAnswerError

from ottla.protocol.errors import ErrorCode

Leader = tuple[int, int]
"""A broker and its leader epoch."""


class Knowing(Connections):
    """Each broker knows a leader of t-0; one that is None does not respond."""

    def __init__(self, known: Mapping[int, Leader | None]) -> None:
        super().__init__("client", {number: ("host", number) for number in known})
        self.known = dict(known)
        self.asked: list[int] = []

    async def ask(self, broker: int, request: Any, timeout_ms: int = 0) -> Any:
        self.asked.append(broker)
        leader = self.known[broker]
        if leader is None:
            raise NoAnswerError(f"broker {broker} is down")
        partition = SimpleNamespace(
            error_code=ErrorCode.none,
            partition_index=0,
            leader_id=leader[0],
            leader_epoch=leader[1],
        )
        return SimpleNamespace(topics=(SimpleNamespace(partitions=(partition,)),))


async def test_the_first_broker_that_responds_tells_the_leader() -> None:
    connections = Knowing({1: None, 2: (3, 7), 3: (1, 9)})
    assert await connections.leader_and_epoch("t", 0) == (3, 7)
    assert connections.asked == [1, 2]


async def test_a_leader_is_looked_up_once() -> None:
    connections = Knowing({1: (1, 4)})
    await connections.leader("t", 0)
    await connections.leader("t", 0)
    assert connections.asked == [1]


async def test_metadata_of_an_earlier_epoch_is_refused() -> None:
    connections = Knowing({1: (1, 5), 2: (2, 6)})
    assert await connections.leader_and_epoch("t", 0) == (1, 5)
    connections.known[1] = (3, 4)
    connections.forget_leader("t", 0)
    assert await connections.leader_and_epoch("t", 0) == (2, 6)


async def test_a_committed_epoch_makes_the_client_leave_a_former_leader() -> None:
    connections = Knowing({1: (1, 5), 2: (2, 6)})
    assert await connections.leader("t", 0) == 1
    connections.epoch_seen("t", 0, 6)
    assert await connections.leader_and_epoch("t", 0) == (2, 6)


async def test_without_a_committed_epoch_the_known_leader_stays() -> None:
    connections = Knowing({1: (1, 5), 2: (2, 6)})
    await connections.leader("t", 0)
    connections.epoch_seen("t", 0, -1)
    assert await connections.leader("t", 0) == 1


async def test_no_broker_that_knows_the_epoch_is_no_answer() -> None:
    connections = Knowing({1: (1, 5), 2: None})
    connections.epoch_seen("t", 0, 6)
    with pytest.raises(NoAnswerError, match="broker 2 is down"):
        await connections.leader("t", 0)
    connections.known[2] = (1, 5)
    with pytest.raises(NoAnswerError, match="broker 2 knows no leader of t-0, or a former one"):
        await connections.leader("t", 0)
