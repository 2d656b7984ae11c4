"""TCP in memory: order, cuts, ends, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from simulation.loop import DRIVER, VirtualLoop
from simulation.process import Process


class Echo(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Client(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = b""
        self.lost_at: float | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, error: Exception | None) -> None:
        self.lost_at = asyncio.get_running_loop().time()


async def serve(loop: VirtualLoop) -> Process:
    process = Process("server")

    async def listen() -> None:
        server = await loop.create_server(Echo, "server", 9092)
        await server.start_serving()

    await loop.start_in(process, listen)
    return process


def run(main: Callable[[VirtualLoop], Any]) -> Any:
    loop = VirtualLoop(Random(3))
    try:
        return loop.run(lambda: main(loop))
    finally:
        loop.close()


def test_bytes_arrive_late_and_in_order() -> None:
    async def main(loop: VirtualLoop) -> bytes:
        await serve(loop)
        _, client = await loop.create_connection(Client, "server", 9092)
        for number in range(50):
            client.transport.write(b"%d " % number)
        await asyncio.sleep(1)
        return bytes(client.data)

    assert run(main) == b"".join(b"%d " % number for number in range(50))


def test_a_cut_holds_bytes_until_it_is_healed() -> None:
    async def main(loop: VirtualLoop) -> None:
        await serve(loop)
        _, client = await loop.create_connection(Client, "server", 9092)
        loop.network.cut(DRIVER, "server")
        client.transport.write(b"held")
        await asyncio.sleep(5)
        assert client.data == b""
        loop.network.heal()
        await asyncio.sleep(1)
        assert client.data == b"held"

    run(main)


def test_a_killed_process_loses_its_connections_and_refuses_new_ones() -> None:
    async def main(loop: VirtualLoop) -> None:
        server = await serve(loop)
        _, client = await loop.create_connection(Client, "server", 9092)
        loop.forget(server)
        loop.network.died(server)
        await asyncio.sleep(1)
        assert client.lost_at is not None
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Client, "server", 9092)

    run(main)


def test_a_writer_is_paused_while_its_reader_does_not_read() -> None:
    async def main(loop: VirtualLoop) -> None:
        server = await serve(loop)
        _, client = await loop.create_connection(Client, "server", 9092)
        paused: list[bool] = []
        client.pause_writing = lambda: paused.append(True)
        client.resume_writing = lambda: paused.append(False)
        server.is_paused = True
        client.transport.write(b"x" * 200_000)
        await asyncio.sleep(1)
        assert paused == [True]
        server.is_paused = False
        await asyncio.sleep(1)
        assert paused == [True, False]

    run(main)
