"""Requests of a simulated client to the coordinator of a group or a transactional id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from ottla.protocol.errors import ErrorCode
from simulation.connection import RETRY_S, Connections, NoAnswerError, RefusedError
from simulation.consumers import COORDINATOR_MOVED, check

REQUEST_TIMEOUT_MS: Final = 1_500
MAX_TRIES: Final = 100
RETRIABLE: Final = COORDINATOR_MOVED | {
    ErrorCode.concurrent_transactions,
    ErrorCode.unstable_offset_commit,
}


async def ask_coordinator(
    connections: Connections, kind: int, key: str, request: Any, code_of: Callable[[Any], int]
) -> Any:
    """The answer without an error that means to ask again. Raises NoAnswerError, RefusedError."""
    code = None
    for _ in range(MAX_TRIES):
        broker = await connections.coordinator(key, kind)
        try:
            answer = await connections.ask(broker, request, REQUEST_TIMEOUT_MS)
        except NoAnswerError:
            connections.forget_coordinator(key, kind)
            raise
        code = ErrorCode(code_of(answer))
        if code not in RETRIABLE:
            check(code)
            return answer
        if code in COORDINATOR_MOVED:
            connections.forget_coordinator(key, kind)
        await asyncio.sleep(RETRY_S)
    assert code is not None
    raise RefusedError(code)
