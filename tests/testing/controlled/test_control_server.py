"""Operations over a real socket, asked by the side that tests use."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ottla.testing.control_socket import ControlSocket
from ottla.testing.controlled.control_server import control_server
from ottla.testing.controlled.operations import RefusedError
from ottla.testing.errors import KitError


class Two:
    """Operations that a test can tell apart."""

    async def add(self, first: int, second: int = 1) -> list[int]:
        return [first + second]

    async def refuse(self) -> None:
        raise RefusedError("not today")


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A Unix socket's path has at most 107 bytes.
    return tmp_path_factory.mktemp("s") / "socket"


async def test_operations_and_refusals(path: Path) -> None:
    operations: Any = Two()
    control = ControlSocket(path)
    async with control_server(path, operations):
        assert control.is_open()
        assert await asyncio.to_thread(control.ask, "add", first=2, second=3) == [5]
        assert await asyncio.to_thread(control.ask, "add", first=2) == [3]
        with pytest.raises(KitError, match=r"^not today$"):
            await asyncio.to_thread(control.ask, "refuse")
        assert await asyncio.to_thread(control.ask, "add", first=0) == [1]


async def test_several_questions_on_one_connection(path: Path) -> None:
    operations: Any = Two()
    async with control_server(path, operations):
        reader, writer = await asyncio.open_unix_connection(path)
        for first in (1, 2):
            asked = {"operation": "add", "arguments": {"first": first}}
            writer.write(json.dumps(asked).encode() + b"\n")
            assert json.loads(await reader.readline()) == {"result": [first + 1]}
        writer.close()


async def test_a_socket_that_a_killed_broker_left_is_replaced(path: Path) -> None:
    path.touch()
    operations: Any = Two()
    async with control_server(path, operations):
        assert await asyncio.to_thread(ControlSocket(path).ask, "add", first=1) == [2]
