"""What the simulated clients take for a group's stable offset."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from simulation.connection import GROUP, NoAnswerError, RefusedError
from simulation.transactional_offsets import TransactionalOffsets

from ottla.protocol.errors import ErrorCode


class Answering:
    """Stands for the connections: broker 1 coordinates the group as far as the client knows."""

    def __init__(self, offset: int, code: ErrorCode = ErrorCode.none) -> None:
        self.coordinators = {("g", GROUP): 1}
        self.asked: list[Any] = []
        self._offset = offset
        self._code = code

    async def coordinator(self, key: str, kind: int) -> int:
        return self.coordinators[key, kind]

    async def ask(self, broker: int, request: Any, timeout_ms: int) -> Any:
        self.asked.append(request)
        partition = SimpleNamespace(error_code=ErrorCode.none, committed_offset=self._offset)
        topic = SimpleNamespace(partitions=(partition,))
        return SimpleNamespace(error_code=self._code, topics=(topic,))

    def forget_coordinator(self, key: str, kind: int) -> None:
        self.coordinators.pop((key, kind), None)


def offsets(connections: Answering, coordinator: int) -> TransactionalOffsets:
    return TransactionalOffsets(connections, "w", lambda group: coordinator)  # type: ignore[arg-type]


async def test_the_offset_of_the_coordinator() -> None:
    connections = Answering(7)
    assert await offsets(connections, 1).stable("g") == 7
    assert connections.asked[0].require_stable
    assert await offsets(Answering(-1), 1).stable("g") == 0


async def test_the_answer_of_a_replaced_coordinator_is_none() -> None:
    """Seed 5053 found it: broker 1 did not know yet that the group had moved to broker 2."""
    connections = Answering(3)
    with pytest.raises(NoAnswerError, match="the coordinator of g was replaced"):
        await offsets(connections, 2).stable("g")
    assert connections.coordinators == {}


async def test_a_refusal_is_passed_on() -> None:
    with pytest.raises(RefusedError):
        await offsets(Answering(3, ErrorCode.group_authorization_failed), 1).stable("g")
