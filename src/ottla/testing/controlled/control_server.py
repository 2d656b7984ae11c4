"""The socket on which a test asks this broker's process for operations.

A Unix socket in a folder that only this user can enter. One line of JSON in each direction:
`{"operation": "roll", "arguments": {"topic": "t"}}` is answered with `{"result": null}` or
`{"error": "there is no topic t"}`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from ottla.testing.controlled.operations import Operations, RefusedError

MAX_LINE_BYTES: Final = 1 << 20


@asynccontextmanager
async def control_server(path: Path, operations: Operations) -> AsyncIterator[None]:
    """Answers on the socket `path` while the context lasts."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                answer = await _answer(json.loads(line), operations)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except ConnectionError:
            pass  # the test has gone
        finally:
            writer.close()

    path.unlink(missing_ok=True)  # noqa: ASYNC240  the loop serves nobody yet
    server = await asyncio.start_unix_server(serve, path, limit=MAX_LINE_BYTES)
    try:
        yield
    finally:
        server.close()


async def _answer(asked: dict[str, Any], operations: Operations) -> dict[str, Any]:
    operation = getattr(operations, asked["operation"])
    try:
        return {"result": await operation(**asked["arguments"])}
    except RefusedError as error:
        return {"error": str(error)}
