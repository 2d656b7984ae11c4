"""A session with a real ZooKeeper when the network, the server or the session fails."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import pytest

from ottla.cluster.cluster_view import ClusterView
from ottla.cluster.plans import Plans
from ottla.config.broker import BrokerConfig
from ottla.controller import layout
from ottla.controller.plan import Plan
from ottla.coordination.tree import (
    MAX_OPERATIONS,
    MAX_REQUEST_BYTES,
    Change,
    ConnectionLostError,
    Create,
    Delete,
    Event,
    NodeExistsError,
    SessionExpiredError,
)
from ottla.coordination.zookeeper import (
    EnsembleError,
    State,
    ZooKeeperCoordination,
    ZooKeeperTree,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.testing.ports import free_ports
from ottla.testing.zookeeper_server import ZooKeeperServer


@pytest.fixture
def tree(zookeeper: ZooKeeperServer) -> ZooKeeperTree:
    return ZooKeeperTree(
        f"{zookeeper.address}/tests/{uuid4()}",
        session_timeout_ms=10_000,
        connection_timeout_ms=10_000,
    )


@pytest.fixture
async def session(tree: ZooKeeperTree) -> AsyncIterator[ZooKeeperCoordination]:
    session = await tree.connect()
    yield session
    await session.close()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.005)


async def test_each_chroot_is_a_tree_of_its_own(
    tree: ZooKeeperTree, session: ZooKeeperCoordination, zookeeper: ZooKeeperServer
) -> None:
    name = uuid4().hex  # the other tests have trees on this server, too
    await session.create(f"/{name}", b"1")
    again = await tree.connect()
    assert await again.children("/") == (name,)
    whole = ZooKeeperTree(
        zookeeper.address, session_timeout_ms=10_000, connection_timeout_ms=10_000
    )
    root = await whole.connect()
    assert "zookeeper" not in await root.children("/")
    nodes = await root.read_tree("/")
    assert sum(path.endswith(f"/{name}") for path in nodes) == 1
    assert not any(path.startswith("/zookeeper") for path in nodes)
    await again.close()
    await root.close()


async def test_an_unreachable_ensemble_is_one_clear_line() -> None:
    (port,) = free_ports(1)
    tree = ZooKeeperTree(
        f"127.0.0.1:{port}/kafka", session_timeout_ms=10_000, connection_timeout_ms=200
    )
    with pytest.raises(EnsembleError, match=rf"127\.0\.0\.1:{port}/kafka does not answer.*200 ms"):
        await tree.connect()


@pytest.mark.parametrize("connect", ["host:port", "host:1//a", ":"])
async def test_an_invalid_address_is_one_clear_line(connect: str) -> None:
    tree = ZooKeeperTree(connect, session_timeout_ms=10_000, connection_timeout_ms=200)
    with pytest.raises(EnsembleError, match=connect):
        await tree.connect()


async def test_no_thread_is_left(tree: ZooKeeperTree) -> None:
    before = set(threading.enumerate())
    session = await tree.connect()
    started = set(threading.enumerate()) - before
    assert started
    await session.close()
    await until(lambda: not any(thread.is_alive() for thread in started))


async def test_the_connection_comes_back_and_the_session_is_the_same(
    session: ZooKeeperCoordination, zookeeper: ZooKeeperServer
) -> None:
    number = session.number
    states: list[State] = []
    session.on_state(states.append)
    seen: list[Event] = []
    await session.create("/e", b"1", ephemeral=True)
    await session.get("/e", seen.append)
    await session.children("/", seen.append)
    await session.exists("/none", seen.append)

    zookeeper.kill()
    await until(lambda: states == [State.SUSPENDED])
    for write in (session.set("/e", b"2"), session.delete("/e")):
        with pytest.raises(ConnectionLostError):
            await write
    reads = asyncio.gather(session.get("/e"), session.read_tree("/"), session.children("/"))
    plan = asyncio.ensure_future(session.multi([Create("/f")]))
    await asyncio.to_thread(zookeeper.start)
    node, nodes, children = await reads
    assert (node.data, node.owner) == (b"1", number)
    assert set(nodes) - {"/f"} == {"/", "/e"}
    assert set(children) - {"f"} == {"e"}
    await plan
    assert await session.exists("/f") is not None, "a plan that is not yet sent is not in doubt"

    assert states == [State.SUSPENDED, State.CONNECTED]
    assert session.number == number
    assert sorted(seen, key=str) == sorted(
        [Event(Change.DATA, "/e"), Event(Change.CHILDREN, "/"), Event(Change.DATA, "/none")],
        key=str,
    )
    await session.set("/e", b"3")
    await session.get("/e")
    assert len(seen) == 3


async def test_a_write_without_a_response_raises_connection_lost(
    session: ZooKeeperCoordination, zookeeper: ZooKeeperServer
) -> None:
    zookeeper.pause()
    write = asyncio.gather(session.create("/a"), return_exceptions=True)
    read = asyncio.ensure_future(session.children("/"))
    await asyncio.sleep(0)
    zookeeper.kill()
    (answer,) = await write
    await asyncio.to_thread(
        zookeeper.start
    )  # first: the other tests need the server, even if this one fails
    assert isinstance(answer, ConnectionLostError)
    assert await read == ()


async def test_an_expired_session_ends_calls_and_watches(
    tree: ZooKeeperTree,
    session: ZooKeeperCoordination,
    zookeeper: ZooKeeperServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    states: list[State] = []
    session.on_state(states.append)
    seen: list[Event] = []
    await session.create("/e", ephemeral=True)
    await session.get("/e", seen.append)
    with caplog.at_level(logging.WARNING):
        await asyncio.to_thread(zookeeper.expire, session.number)
        other = await tree.connect()
        assert await other.children("/") == ()
        await until(lambda: session.state is State.EXPIRED)
    assert states[-1] is State.EXPIRED
    assert Event(Change.EXPIRED, "") in seen or Event(Change.DELETED, "/e") in seen
    for call in (session.get("/"), session.create("/b"), session.children("/")):
        with pytest.raises(SessionExpiredError):
            await call
    assert all(record.name == "ottla.zookeeper" for record in caplog.records)
    assert f"session {session.number:#x} expired" in caplog.text
    await other.close()


async def test_an_abandoned_session_ends_for_everybody(
    tree: ZooKeeperTree, session: ZooKeeperCoordination
) -> None:
    await session.create("/e", ephemeral=True)
    other = await tree.connect()
    gone = asyncio.Event()
    await other.exists("/e", lambda event: gone.set())
    await asyncio.to_thread(session.abandon)
    with pytest.raises(SessionExpiredError):
        await session.get("/")
    await until(lambda: session.state is State.EXPIRED)
    async with asyncio.timeout(60):
        await gone.wait()
    await other.close()


async def test_a_request_over_the_size_limit_is_our_own_bug(
    session: ZooKeeperCoordination,
) -> None:
    with pytest.raises(AssertionError):
        await session.multi([Delete("/a")] * (MAX_OPERATIONS + 1))
    with pytest.raises(AssertionError):
        await session.create("/a", bytes(MAX_REQUEST_BYTES))
    with pytest.raises(AssertionError):
        await session.multi([Create("/a", bytes(MAX_REQUEST_BYTES // 2))] * 2)
    path = "/" + "a" * 240
    most = [Create(path)] + [
        Create(f"{path}/{index}", bytes(700)) for index in range(MAX_OPERATIONS - 20)
    ]
    await session.multi(most)
    assert len(await session.children(path)) == MAX_OPERATIONS - 20


async def test_a_plan_with_a_node_that_zookeeper_refuses_is_refused_before(
    session: ZooKeeperCoordination,
) -> None:
    await session.create(layout.CONTROLLER_EPOCH)
    ends: list[str] = []
    plans = Plans(session, ClusterView(BrokerConfig()), 0, ends.append)
    parts = tuple(Create(f"/{number}") for number in range(2 * MAX_OPERATIONS))
    largest = (Create("/a", bytes(999_000)), Create("/b", bytes(999_000)))
    assert await plans.carry_out(lambda: Plan("done", (*parts, *largest))) == "done"
    with pytest.raises(ApiError) as caught:
        await plans.carry_out(lambda: Plan("done", (Create("/c", bytes(MAX_REQUEST_BYTES)),)))
    assert caught.value.code is ErrorCode.policy_violation
    assert ends == []
    assert len((await session.get("/b")).data) == 999_000
    assert await plans.carry_out(lambda: Plan("next", (Create("/c"),))) == "next"


async def test_thousands_of_requests_at_once(session: ZooKeeperCoordination) -> None:
    await asyncio.gather(*(session.create(f"/{number}") for number in range(5000)))
    names = await session.children("/")
    assert sorted(map(int, names)) == list(range(5000))
    nodes = await asyncio.gather(*(session.get(f"/{number}") for number in range(5000)))
    assert all(node.version == 0 for node in nodes)


async def test_a_cancelled_call_does_not_affect_the_others(
    session: ZooKeeperCoordination,
) -> None:
    calls = [asyncio.ensure_future(session.create(f"/{number}")) for number in range(100)]
    await asyncio.sleep(0)
    for call in calls[::2]:
        call.cancel()
    await asyncio.wait(calls)
    assert [call.result().version for call in calls[1::2]] == [0] * 50
    with pytest.raises(NodeExistsError):
        await session.create("/1")
