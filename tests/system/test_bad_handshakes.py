"""Clients that never get through a handshake, thousands of them: the broker serves and stays small.

`OTTLA_BAD_HANDSHAKES=1000000` tries a million; with `pytest -s` it says what they cost.
"""

from __future__ import annotations

import asyncio
import os
import random
import ssl
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from tests.security.authority import Authority
from tests.system.test_bad_input import memory_bytes

from ottla.protocol.frames import read_response, write_request
from ottla.protocol.messages import messages_of
from ottla.protocol.sasl_client import Scram
from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

COUNT = int(os.environ.get("OTTLA_BAD_HANDSHAKES", "3000"))
AT_ONCE = 40
WAIT_S = 60
MECHANISM = "SCRAM-SHA-256"
MAX_GROWTH_BYTES = 30_000_000
"""Of the broker's memory, from a tenth of the handshakes to the last."""
HANDSHAKE, AUTHENTICATE, METADATA = 17, 36, 3


def frame(key: int, version: int, name: str, **fields: Any) -> bytes:
    build = messages_of(key, version, "request")
    return write_request(getattr(build, name)(**fields), 7, "bad")


def choose(mechanism: str) -> bytes:
    return frame(HANDSHAKE, 1, "SaslHandshakeRequest", mechanism=mechanism)


def authenticate(message: bytes) -> bytes:
    return frame(AUTHENTICATE, 0, "SaslAuthenticateRequest", auth_bytes=message)


class Attacker:
    """Opens a connection, does one wrong thing, and waits until the broker ends it."""

    def __init__(self, sasl: int, tls: int, seed: int) -> None:
        self.sasl, self.tls = sasl, tls
        self.random = random.Random(seed)
        self.seen: Counter[str] = Counter()
        # Made once: it reads all authorities of the machine, which takes longer than a handshake.
        self.context = ssl.create_default_context()
        self.kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "truncated hello": self.truncated_hello,
            "random bytes for TLS": self.random_for_tls,
            "plaintext for TLS": self.plaintext_for_tls,
            "random bytes": self.random_bytes,
            "another mechanism": self.another_mechanism,
            "a wrong proof": self.wrong_proof,
            "a replayed proof": self.replayed_proof,
            "a huge token": self.huge_token,
            "a request before": self.request_before,
            "left at once": self.left_at_once,
        }

    async def attack(self, count: int) -> None:
        names = list(self.kinds)

        async def some(number: int) -> None:
            for at in range(number, count, AT_ONCE):
                name = names[at % len(names)]
                await self.kinds[name]()
                self.seen[name] += 1

        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(some(number))

    async def send(self, port: int, *parts: bytes, reads: int = 0) -> list[bytes]:
        """Sends these, reads so many responses, and waits for the end if it expects one."""
        reader, writer = await asyncio.open_connection(HOST, port)
        found: list[bytes] = []
        try:
            async with asyncio.timeout(WAIT_S):
                for part in parts:
                    writer.write(part)
                for _ in range(reads):
                    size = struct.unpack(">i", await reader.readexactly(4))[0]
                    found.append(await reader.readexactly(size))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the broker ended it, as it may at each of these
        finally:
            writer.close()
        return found

    async def until_ended(self, port: int, data: bytes) -> None:
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            writer.write(data)
            async with asyncio.timeout(WAIT_S):
                while await reader.read(1 << 16):
                    pass
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def truncated_hello(self) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = self.context.wrap_bio(incoming, outgoing, server_hostname=HOST)
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        hello = outgoing.read()
        await self.send(self.tls, hello[: self.random.randrange(1, len(hello))])

    async def random_for_tls(self) -> None:
        await self.until_ended(self.tls, b"\x15" + self.random.randbytes(200))

    async def plaintext_for_tls(self) -> None:
        await self.until_ended(self.tls, choose(MECHANISM))

    async def random_bytes(self) -> None:
        garbage = self.random.randbytes(60)
        await self.until_ended(self.sasl, len(garbage).to_bytes(4, "big") + garbage)

    async def another_mechanism(self) -> None:
        (answer,) = await self.send(self.sasl, choose("GSSAPI"), reads=1)
        assert read_response(HANDSHAKE, 1, memoryview(answer))[1].error_code.name == (
            "unsupported_sasl_mechanism"
        )

    async def wrong_proof(self) -> None:
        scram = Scram(MECHANISM, "admin", "wrong", f"{self.random.getrandbits(64):x}")
        await self.until_refused(scram.first(), scram.final)

    async def replayed_proof(self) -> None:
        scram = Scram(MECHANISM, "admin", "right", "always the same".replace(" ", ""))
        old = scram.final(b"r=alwaysthesameandtheservers,s=c2FsdA==,i=4096")
        await self.until_refused(scram.first(), lambda _: old)

    async def until_refused(self, first: bytes, final: Callable[[bytes], bytes]) -> None:
        reader, writer = await asyncio.open_connection(HOST, self.sasl)

        async def answer() -> Any:
            size = struct.unpack(">i", await reader.readexactly(4))[0]
            return memoryview(await reader.readexactly(size))

        try:
            async with asyncio.timeout(WAIT_S):
                writer.write(choose(MECHANISM))
                await answer()
                writer.write(authenticate(first))
                challenge = read_response(AUTHENTICATE, 0, await answer())[1]
                writer.write(authenticate(final(challenge.auth_bytes)))
                refused = read_response(AUTHENTICATE, 0, await answer())[1]
                assert refused.error_code.name == "sasl_authentication_failed"
                assert not await reader.read(1)
        finally:
            writer.close()

    async def huge_token(self) -> None:
        await self.until_ended(self.sasl, (600 * 1024).to_bytes(4, "big") + b"x" * 5000)

    async def request_before(self) -> None:
        await self.until_ended(self.sasl, frame(METADATA, 1, "MetadataRequest", topics=None))

    async def left_at_once(self) -> None:
        await self.send(self.sasl)


def serves(client: dict[str, Any]) -> bool:
    producer = confluent_kafka.Producer(client)
    failures: list[Any] = []
    producer.produce("t", b"v", on_delivery=lambda error, _: failures.append(error))
    return producer.flush(WAIT_S) == 0 and failures == [None]


def open_files(broker: BrokerProcess) -> int:
    assert broker.process is not None
    return len(list(Path(f"/proc/{broker.process.pid}/fd").iterdir()))


async def test_bad_handshakes_cost_no_memory(
    new_broker: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    authority = Authority()
    store = authority.issue("CN=broker").store(tmp_path / "broker.pem")
    sasl, tls = free_ports(2)
    settings = {
        "listeners": f"SASL_PLAINTEXT://{HOST}:{sasl},SASL_SSL://{HOST}:{tls}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "sasl.enabled.mechanisms": MECHANISM,
        "ottla.first.users": f"{MECHANISM}=[name=admin,password=right]",
        "connection.failed.authentication.delay.ms": "10",
        "auto.create.topics.enable": "true",
    }
    options = [word for each in settings.items() for word in ("-c", "=".join(each))]
    broker = new_broker(*options)
    client = {
        "bootstrap.servers": f"{HOST}:{tls}",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.username": "admin",
        "sasl.password": "right",
        "ssl.ca.location": str(authority.trust(tmp_path / "trust.pem")),
        "log_level": 0,
    }
    assert await asyncio.to_thread(serves, client)
    attacker = Attacker(sasl, tls, seed=1)
    await attacker.attack(COUNT // 10)
    before, files_before = memory_bytes(broker), open_files(broker)
    attack = asyncio.create_task(attacker.attack(COUNT - COUNT // 10))
    while not attack.done():
        assert await asyncio.to_thread(serves, client), "a client with a password is served"
        await asyncio.wait([attack], timeout=2)
    await attack
    assert sum(attacker.seen.values()) == COUNT
    after, files_after = memory_bytes(broker), open_files(broker)
    print(f"{COUNT:,} handshakes: {before:,} to {after:,} bytes, {files_after} open files")
    assert after - before < MAX_GROWTH_BYTES
    assert files_after <= files_before + AT_ONCE
    assert await asyncio.to_thread(serves, client)
    assert "Traceback" not in broker.said()
