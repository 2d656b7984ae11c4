"""Requests for the controller, sent to another broker: two listeners and a connection."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ottla.cluster import forwarding
from ottla.cluster.forwarding import ControllerForwarding
from ottla.config import BrokerConfig
from ottla.config.listener import Endpoint
from ottla.controller.image import NO_LEADER, BrokerImage, ClusterImage
from ottla.network.client_session import ClientSession
from ottla.network.connection_limits import ConnectionLimits
from ottla.network.dispatcher import Dispatcher
from ottla.network.handlers import Handler, Handlers
from ottla.network.listener import Listener
from ottla.network.peers import Peers
from ottla.network.request_context import RequestContext
from ottla.network.throttling import Throttling
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import read_response, write_request
from ottla.protocol.messages import messages_of
from ottla.runtime.clock import SystemClock
from ottla.runtime.cpu_thread import CpuThread
from ottla.security.principal import ANONYMOUS

HEARTBEAT, DELETE_TOPICS = 12, 20


class Broker:
    """A listener, its peers, and an image; responses name the broker that answered."""

    def __init__(self, broker_id: int) -> None:
        self.contexts: list[RequestContext[Any]] = []
        self.envelopes: list[str] = []
        """The client ids of received envelopes."""
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.errors: tuple[ErrorCode, ...] = ()
        """The error code of the topics in the next response."""
        self.is_controller = False
        self.is_closing = False
        self.config = BrokerConfig(
            {"node.id": str(broker_id), "listeners": "PLAINTEXT://127.0.0.1:0"},
        )
        self.image = ClusterImage("c")
        self.image.controller_id = 1
        self.peers = Peers(self.config, self.endpoint_of)
        forwarding = ControllerForwarding(
            broker_id,
            self.peers,
            lambda: self.image,
            is_controller=lambda: self.is_controller,
            is_closing=lambda: self.is_closing,
        )
        handlers = {key: Handler(key, 0, 6, self.answer) for key in (HEARTBEAT, DELETE_TOPICS)}
        self.limits = ConnectionLimits(self.config)
        throttling = Throttling(self.config, SystemClock(), lambda session: True)
        self.dispatcher = Dispatcher(
            self,
            Handlers((), handlers.get),
            forwarding,
            cpu_thread=CpuThread(),
            throttling=throttling,
            is_broker=self.is_broker,
        )
        self.server = Listener(
            self.config.endpoints[0],
            self.config,
            self.dispatcher,
            self.limits,
            throttling=throttling,
            next_connection_id=itertools.count(1).__next__,
            monotonic_ms=SystemClock().monotonic_ms,
        )

    def is_broker(self, session: ClientSession) -> bool:
        """Only who sends an envelope must be one."""
        request, _, client_id = self.dispatcher.last_request().partition(" (client ")
        assert request == f"envelope version 0 from {session.host}"
        self.envelopes.append(client_id.removesuffix(")"))
        return True

    def endpoint_of(self, broker_id: int) -> Endpoint | None:
        broker = self.image.brokers.get(broker_id)
        return None if broker is None else broker.inter_broker_endpoint("PLAINTEXT")

    async def answer(self, request: Any, context: RequestContext[Any]) -> Any:
        self.contexts.append(context)
        self.asked.set()
        await self.may_answer.wait()
        build, throttle = context.messages, self.config.id
        if build.key == DELETE_TOPICS:
            responses = tuple(
                build.DeletableTopicResult(name="t", topic_id=None, error_code=error)
                for error in self.errors
            )
            return build.DeleteTopicsResponse(throttle_time=throttle, responses=responses)
        return build.HeartbeatResponse(throttle_time=throttle)

    async def start(self) -> None:
        await self.server.listen()
        await self.server.start()

    @property
    def registration(self) -> BrokerImage:
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", self.server.port)
        return BrokerImage(self.config.id, (endpoint,))

    async def connections_are(self, count: int) -> None:
        async with asyncio.timeout(60):
            while self.limits.count != count:
                await asyncio.sleep(0.005)

    async def close(self) -> None:
        self.may_answer.set()
        self.peers.close()
        await self.server.close(grace_ms=0)


@pytest.fixture
async def all_three() -> AsyncIterator[tuple[Broker, Broker, Broker]]:
    """The image of each broker: broker 1 is the controller."""
    made = Broker(1), Broker(2), Broker(3)
    made[0].is_controller = True
    for broker in made:
        await broker.start()
        for other in made:
            other.image.brokers[broker.config.id] = broker.registration
    yield made
    for broker in made:
        await broker.close()


@pytest.fixture
def brokers(all_three: tuple[Broker, Broker, Broker]) -> tuple[Broker, Broker]:
    """Broker 1, the controller, and broker 2. They do not know broker 3."""
    for broker in all_three:
        del broker.image.brokers[3]
    return all_three[:2]


@pytest.fixture
def third(all_three: tuple[Broker, Broker, Broker], brokers: tuple[Broker, Broker]) -> Broker:
    """Broker 3; the others know its address."""
    third = all_three[2]
    for broker in all_three:
        broker.image.brokers[3] = third.registration
    return third


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, request: Any, correlation_id: int) -> None:
        self._writer.write(write_request(request, correlation_id, "the client"))

    async def response(self, key: int, version: int) -> tuple[int, Any]:
        async with asyncio.timeout(60):
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            frame = memoryview(await self._reader.readexactly(size))
        return read_response(key, version, frame)

    async def answer(self, key: int, version: int) -> tuple[int, int]:
        """The correlation id, and the id of the broker that answered."""
        correlation_id, response = await self.response(key, version)
        return correlation_id, response.throttle_time

    async def is_closed(self) -> bool:
        return await asyncio.wait_for(self._reader.read(), 20) == b""

    def hang_up(self) -> None:
        self._writer.transport.abort()


async def connect(broker: Broker) -> Client:
    return Client(*await asyncio.open_connection("127.0.0.1", broker.server.port))


def delete(version: int) -> Any:
    build = messages_of(DELETE_TOPICS, version, "request")
    return build.DeleteTopicsRequest(timeout=1_000)


def beat() -> Any:
    build = messages_of(HEARTBEAT, 4, "request")
    return build.HeartbeatRequest(group_id="g", generation_id=1)


@pytest.mark.parametrize("version", [1, 4, 6])
async def test_the_controller_answers_requests_to_any_broker(
    brokers: tuple[Broker, Broker], version: int
) -> None:
    for broker in brokers:
        client = await connect(broker)
        client.send(delete(version), 77)
        assert await client.answer(DELETE_TOPICS, version) == (77, 1)
    assert len(brokers[0].contexts) == 2
    assert {each.client_id for each in brokers[0].contexts} == {"the client"}
    assert {each.version for each in brokers[0].contexts} == {version}
    assert brokers[1].contexts == []


async def test_other_requests_are_answered_locally_and_in_order(
    brokers: tuple[Broker, Broker],
) -> None:
    client = await connect(brokers[1])
    for number in range(20):
        client.send(delete(6) if number % 2 else beat(), number)
    for number in range(20):
        key, version, by = (DELETE_TOPICS, 6, 1) if number % 2 else (HEARTBEAT, 4, 2)
        assert await client.answer(key, version) == (number, by)


async def test_clients_with_the_same_correlation_ids_do_not_mix(
    brokers: tuple[Broker, Broker],
) -> None:
    clients = [await connect(brokers[1]) for _ in range(5)]
    for client in clients:
        client.send(delete(6), 1)
    for client in clients:
        assert await client.answer(DELETE_TOPICS, 6) == (1, 1)


async def test_the_connection_between_the_brokers_has_a_client_id(
    brokers: tuple[Broker, Broker],
) -> None:
    client = await connect(brokers[1])
    for number in range(2):
        client.send(delete(6), number)
        assert await client.answer(DELETE_TOPICS, 6) == (number, 1)
    assert brokers[0].envelopes == ["broker-2-forwarding"] * 2


@pytest.mark.parametrize("correlation_id", [0, -1, 2**31 - 1, -(2**31)])
async def test_any_correlation_id_is_returned(
    brokers: tuple[Broker, Broker], correlation_id: int
) -> None:
    client = await connect(brokers[1])
    client.send(delete(6), correlation_id)
    assert await client.answer(DELETE_TOPICS, 6) == (correlation_id, 1)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "FORWARD_WITHIN_MS", 200)


@pytest.mark.parametrize("controller_id", [NO_LEADER, 2, 3])
@pytest.mark.usefixtures("impatient")
async def test_the_connection_ends_if_no_controller_is_found_in_time(
    brokers: tuple[Broker, Broker], controller_id: int
) -> None:
    """None is elected; this broker no longer is the controller; the controller is unregistered."""
    brokers[1].image.controller_id = controller_id
    client = await connect(brokers[1])
    client.send(delete(6), 1)
    assert await client.is_closed()
    assert brokers[0].contexts == brokers[1].contexts == []


@pytest.mark.parametrize("controller_id", [NO_LEADER, 2, 3])
async def test_without_a_controller_a_request_waits_for_the_next(
    brokers: tuple[Broker, Broker], controller_id: int
) -> None:
    brokers[1].image.controller_id = controller_id
    client, other = await connect(brokers[1]), await connect(brokers[1])
    client.send(delete(6), 1)
    other.send(beat(), 2)
    assert await other.answer(HEARTBEAT, 4) == (2, 2)
    brokers[1].image.controller_id = 1
    assert await client.answer(DELETE_TOPICS, 6) == (1, 1)


async def test_a_new_controller_answers_its_waiting_requests(
    brokers: tuple[Broker, Broker],
) -> None:
    image = brokers[1].image
    image.controller_id = NO_LEADER
    client, other = await connect(brokers[1]), await connect(brokers[1])
    client.send(delete(6), 1)
    other.send(beat(), 2)
    assert await other.answer(HEARTBEAT, 4) == (2, 2)
    image.controller_id, brokers[1].is_controller = 2, True
    assert await client.answer(DELETE_TOPICS, 6) == (1, 2)


@pytest.mark.usefixtures("impatient")
async def test_a_controller_that_is_gone_ends_the_connection(
    brokers: tuple[Broker, Broker], caplog: pytest.LogCaptureFixture
) -> None:
    await brokers[0].server.close(grace_ms=0)
    client = await connect(brokers[1])
    client.send(delete(6), 1)
    assert await client.is_closed()
    assert "closed the connection from 127.0.0.1: the controller, broker 1: " in caplog.text
    other = await connect(brokers[1])
    other.send(beat(), 2)
    assert await other.answer(HEARTBEAT, 4) == (2, 2)


async def test_the_next_controller_answers_if_one_dies_during_a_request(
    brokers: tuple[Broker, Broker], third: Broker
) -> None:
    controller, asked = brokers
    controller.may_answer.clear()
    clients = [await connect(asked) for _ in range(2)]
    for client in clients:
        client.send(delete(6), 1)
    await asyncio.wait_for(controller.asked.wait(), 20)
    third.is_controller = True
    await controller.server.close(grace_ms=0)
    asked.image.controller_id = 3
    for client in clients:
        assert await client.answer(DELETE_TOPICS, 6) == (1, 3)


async def test_requests_go_to_the_successor_of_a_former_controller(
    brokers: tuple[Broker, Broker], third: Broker
) -> None:
    former, asked = brokers
    former.is_controller, third.is_controller = False, True
    client = await connect(asked)
    client.send(delete(6), 9)
    async with asyncio.timeout(60):
        while not former.envelopes:
            await asyncio.sleep(0.005)
    asked.image.controller_id = 3
    assert await client.answer(DELETE_TOPICS, 6) == (9, 3)
    assert third.envelopes == ["broker-2-forwarding"]
    assert former.contexts == []


async def test_the_controller_gets_the_clients_identity(brokers: tuple[Broker, Broker]) -> None:
    client = await connect(brokers[1])
    client.send(delete(6), 1)
    await client.answer(DELETE_TOPICS, 6)
    (context,) = brokers[0].contexts
    assert (context.session.address, context.session.principal) == ("/127.0.0.1", ANONYMOUS)
    assert context.client_id == "the client"


async def test_a_pending_request_is_answered_by_its_first_receiver(
    brokers: tuple[Broker, Broker], third: Broker
) -> None:
    former, asked = brokers
    former.may_answer.clear()
    client, later = await connect(asked), await connect(asked)
    client.send(delete(6), 9)
    await asyncio.wait_for(former.asked.wait(), 20)
    asked.image.controller_id = 3
    third.is_controller = True
    later.send(delete(6), 10)
    assert await later.answer(DELETE_TOPICS, 6) == (10, 3)
    former.may_answer.set()
    assert await client.answer(DELETE_TOPICS, 6) == (9, 1)


async def test_not_controller_is_passed_to_the_client(
    brokers: tuple[Broker, Broker],
) -> None:
    """After an overtaken plan the client looks up the controller and retries."""
    brokers[0].errors = (ErrorCode.not_controller,)
    client = await connect(brokers[1])
    client.send(delete(6), 5)
    correlation_id, response = await client.response(DELETE_TOPICS, 6)
    assert correlation_id == 5
    assert [topic.error_code for topic in response.responses] == [ErrorCode.not_controller]
    client.send(beat(), 6)
    assert await client.answer(HEARTBEAT, 4) == (6, 2)


async def test_a_controller_that_does_not_answer_ends_the_connection(
    brokers: tuple[Broker, Broker],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    controller, asked = brokers
    controller.may_answer.clear()
    monkeypatch.setattr(forwarding, "FORWARD_WITHIN_MS", 30)
    client = await connect(asked)
    client.send(delete(6), 1)
    assert await client.is_closed()
    assert "broker 1 did not answer within" in caplog.text
    controller.may_answer.set()
    monkeypatch.setattr(forwarding, "FORWARD_WITHIN_MS", 20_000)
    again = await connect(asked)
    again.send(delete(6), 2)
    assert await again.answer(DELETE_TOPICS, 6) == (2, 1)


async def test_a_client_that_disconnects_does_not_affect_the_others(
    brokers: tuple[Broker, Broker],
) -> None:
    controller, asked = brokers
    controller.may_answer.clear()
    gone, stays = await connect(asked), await connect(asked)
    gone.send(delete(6), 1)
    await asyncio.wait_for(controller.asked.wait(), 20)
    stays.send(delete(6), 2)
    gone.hang_up()
    await asked.connections_are(1)
    controller.may_answer.set()
    assert await stays.answer(DELETE_TOPICS, 6) == (2, 1)
    assert controller.envelopes == ["broker-2-forwarding"] * 2


async def test_a_closing_broker_ends_the_connection(brokers: tuple[Broker, Broker]) -> None:
    controller, asked = brokers
    controller.may_answer.clear()
    client = await connect(asked)
    client.send(delete(6), 1)
    await asyncio.wait_for(controller.asked.wait(), 20)
    asked.is_closing = True
    asked.peers.close()
    assert await client.is_closed()
