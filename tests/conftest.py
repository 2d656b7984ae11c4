"""A whole node in this process, asked through the codec as from a connection, but without one."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from tests.senders import session_of
from tests.turns import most_calls_at_once

from ottla.api.table import HANDLERS
from ottla.cluster.broker_node import Folder
from ottla.cluster.client_quotas import ClientQuotas
from ottla.cluster.cluster_view import ClusterView
from ottla.cluster.controller import Controller
from ottla.cluster.controller_client import ControllerClient
from ottla.cluster.departed import DepartedBrokers
from ottla.cluster.membership import Membership
from ottla.cluster.registration import Registration
from ottla.cluster.topic_creation import TopicCreation
from ottla.config import BrokerConfig
from ottla.config.listener import Endpoint
from ottla.controller.image import (
    BrokerAppeared,
    BrokerImage,
    PartitionsChanged,
    PartitionState,
)
from ottla.network.broker_identity import BrokerIdentity
from ottla.network.client_session import ClientSession
from ottla.network.own_request import answer_own
from ottla.network.request_context import RequestContext
from ottla.network.throttling import Throttling
from ottla.node.node import Node
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import (
    read_request_body,
    read_request_header,
    read_response,
    write_request,
    write_response,
)
from ottla.protocol.messages import Messages, messages_of
from ottla.records.build import build_batch
from ottla.records.record import Record

pytest_plugins = ("tests.ci_time", "tests.skips", "tests.slow", "tests.stacks")

# A test's sessions share no state and leave no process behind.
os.environ.setdefault("OTTLA_CLASS_ARCHIVE", "off")

# The programs that tests start use Spark for seconds: compiling it well takes longer than that.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A shell that runs the tests in its background makes them ignore SIGINT, and their children too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

PRODUCE, FETCH, CREATE_TOPICS = 0, 1, 19

OPEN_FILES = Path("/proc/self/fd")
MANY_OPEN_FILES = 300


_open_files = 0
"""After the last collection."""


def pytest_runtest_logfinish() -> None:
    """Closes the logs of tests that ended them as a crash does, without closing them.

    A log is part of a cycle, so its files wait for a full collection of garbage. That is rare in a
    process with as many objects as Spark's tests make, and py4j still uses `select`, which takes no
    descriptor above 1,023. Not in the teardown: there, pytest still holds what the test has logged,
    with exceptions whose tracebacks hold logs.
    """
    global _open_files
    if OPEN_FILES.exists() and len(os.listdir(OPEN_FILES)) > _open_files + MANY_OPEN_FILES:
        gc.collect()
        _open_files = len(os.listdir(OPEN_FILES))


class NodeCall:
    """Requests to one node, and the everyday ones ready-made."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.counts_calls = False
        self.most_calls = 0
        """That the last handler made in one go, if they are counted."""

    @staticmethod
    def request(key: int, version: int) -> Messages:
        """Builds request messages of that type and version."""
        return messages_of(key, version, "request")

    async def ask(
        self, request: Any, listener: str = "PLAINTEXT", session: ClientSession | None = None
    ) -> Any:
        """The answer, sent through the codec both ways; None where none is due."""
        frame = memoryview(write_request(request, 5, "tests"))[4:]
        header = read_request_header(frame)
        handler = HANDLERS.find(header.key)
        assert handler is not None
        assert handler.min_version <= header.version <= handler.max_version
        context = RequestContext(
            broker=self.node,
            session=session or session_of(request, listener),
            version=header.version,
            client_id=header.client_id,
            messages=messages_of(header.key, header.version),
        )
        work = handler.answer(read_request_body(header, frame), context)
        if self.counts_calls:
            answer, self.most_calls = await most_calls_at_once(work)
        else:
            answer = await work
        if answer is None:
            return None
        data = b"".join(bytes(part) for part in write_response(answer, header.correlation_id))
        return read_response(header.key, header.version, memoryview(data)[4:])[1]

    async def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        build = self.request(CREATE_TOPICS, 7)
        configs = tuple(
            build.CreatableTopicConfig(name=name.replace("_", "."), value=value)
            for name, value in config.items()
        )
        wanted = build.CreatableTopic(
            name=topic, num_partitions=partitions, replication_factor=1, configs=configs
        )
        answer = await self.ask(build.CreateTopicsRequest(topics=(wanted,), timeout=30_000))
        assert answer.topics[0].error_code is ErrorCode.none

    async def produce(
        self,
        topic: str,
        records: bytes | None,
        *,
        index: int = 0,
        version: int = 9,
        acks: int = -1,
        transactional_id: str | None = None,
    ) -> Any:
        """The answer for the one partition; None for acks=0."""
        build = self.request(PRODUCE, version)
        data = build.PartitionProduceData(index=index, records=records)
        named = build.TopicProduceData(
            **({"topic_id": self.topic_id(topic)} if version >= 13 else {"name": topic}),
            partition_data=(data,),
        )
        answer = await self.ask(
            build.ProduceRequest(
                acks=acks, timeout=30_000, topic_data=(named,), transactional_id=transactional_id
            )
        )
        return None if answer is None else answer.responses[0].partition_responses[0]

    def topic_id(self, topic: str) -> Any:
        """None, which is the zero id, where there is none."""
        found = self.node.image.topic(topic)
        return None if found is None else found.topic_id

    async def appear(
        self, broker_id: int, rack: str | None = None, listener: str = "PLAINTEXT", epoch: int = 1
    ) -> None:
        """Another broker is in the cluster, by metadata deltas alone: nobody listens there."""
        endpoint = Endpoint(listener, f"broker-{broker_id}.invalid", 9092)
        await self.node.view.apply(
            [BrokerAppeared(BrokerImage(broker_id, (endpoint,), rack, epoch))]
        )

    async def place(
        self,
        topic: str,
        replicas: Sequence[int],
        *,
        leader: int | None = None,
        isr: Sequence[int] | None = None,
        index: int = 0,
    ) -> PartitionState:
        """The controller's word, in a new leader epoch: the leader is the first replica, and all
        are in sync, unless the arguments say otherwise.
        """
        image = self.node.image.topics[topic]
        before = image.partitions[index]
        state = before._replace(
            leader=replicas[0] if leader is None else leader,
            leader_epoch=before.leader_epoch + 1,
            replicas=tuple(replicas),
            isr=tuple(replicas if isr is None else isr),
            partition_epoch=before.partition_epoch + 1,
        )
        partitions = (*image.partitions[:index], state, *image.partitions[index + 1 :])
        changed = PartitionsChanged(replace(image, partitions=partitions), (index,))
        await self.node.view.apply([changed])
        return state

    async def copied(self, broker_id: int, offset: int, start_offset: int = 0) -> Any:
        """Another broker fetches t-0 from `offset`, and so holds all before; what it is told."""
        build = self.request(FETCH, 17)
        partition = build.FetchPartition(
            partition=0,
            fetch_offset=offset,
            partition_max_bytes=1 << 20,
            current_leader_epoch=-1,
            log_start_offset=start_offset,
        )
        topic = build.FetchTopic(topic_id=self.topic_id("t"), partitions=(partition,))
        asked = build.FetchRequest(
            replica_state=build.ReplicaState(replica_id=broker_id, replica_epoch=1),
            topics=(topic,),
            max_wait=0,
            min_bytes=0,
        )
        answer = await self.ask(asked)
        (found,) = answer.responses[0].partitions
        assert found.error_code is ErrorCode.none
        return found

    @staticmethod
    def batch(*values: bytes, time_ms: int = 1_000, **header: Any) -> bytes:
        """A batch of keyless records at `time_ms`, one millisecond after the other."""
        records = [Record(0, time_ms + n, None, value) for n, value in enumerate(values)]
        return build_batch(records, **header)


class LoneNode:
    """A broker's part in its cluster and nothing else: no listener, no log."""

    endpoints = (Endpoint("PLAINTEXT", "127.0.0.1", 9092),)

    async def check_listeners(self, values: Any, *, reads_again: bool) -> None:
        """There are none."""

    def __init__(
        self,
        config: BrokerConfig,
        tree: Any,
        *,
        peers: Any = None,
        directory_id: str = "folder",
        lock: str | None = None,
    ) -> None:
        self.config = config
        self.clock = SimpleNamespace(now_ms=lambda: 1_000, monotonic_ms=lambda: 1_000)
        self.random = random = Random(1)
        self.folder = Folder(directory_id, lock)
        self.ousted: list[str] = []
        nobody: Any = SimpleNamespace(
            address=lambda broker_id: None, lost_at=lambda broker_id: None
        )
        self.peers: Any = peers or nobody
        self.authorization = None
        self.view = ClusterView(config)
        self.image = self.view.image
        self.registration = Registration(config.id)
        self.client = ControllerClient(
            self.registration, self.image, self.peers, partial(answer_own, self, HANDLERS)
        )
        self.controller = Controller(
            config, self.view, self.clock, self.peers, random=random, placement_start=lambda: 0
        )
        self.membership = Membership(
            config,
            self.clock,
            tree,
            self.registration,
            self.view,
            self.controller,
            self.peers,
            identity=BrokerIdentity(config.id, random),
            random=random,
            on_ousted=self._ousted,
        )
        self.topic_creation = TopicCreation(config, self.clock, self.image, self.client)
        self.throttling = Throttling(config, self.clock, self.is_broker)
        self.view.subscribe(ClientQuotas(self.throttling).notified)
        self.departed = DepartedBrokers(self.clock)
        self.view.subscribe(self.departed.notified)

    @staticmethod
    def is_broker(session: ClientSession) -> bool:
        return session.is_own or session.broker_id is not None

    async def start(self, cluster_id: str | None = None) -> None:
        await self.membership.connect(cluster_id)
        await self.membership.first_image()
        await self.register()

    async def register(self) -> None:
        await self.membership.register(self.endpoints, self.folder)

    async def _ousted(self, why: str) -> None:
        self.ousted.append(why)


@pytest.fixture
def lone_node() -> type[LoneNode]:
    """The class, for tests of the controller and of requests to it."""
    return LoneNode


@pytest.fixture
async def start_node(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[NodeCall]]]:
    """Starts a node with these settings (dots as underscores) on this test's folder."""
    running: list[Node] = []

    async def start(**settings: str) -> NodeCall:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        own = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "data")}
        node = Node(BrokerConfig({**own, **given}), HANDLERS)
        await node.start()
        running.append(node)
        return NodeCall(node)

    yield start
    for node in running:
        if not node.closing:
            await node.close()


@pytest.fixture
async def node_call(start_node: Callable[..., Awaitable[NodeCall]]) -> NodeCall:
    """A node with nothing set, and the topic "t"."""
    made = await start_node()
    await made.create("t")
    return made


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """Waits, with a limit, until a condition holds."""

    async def wait(condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.005)

    return wait
