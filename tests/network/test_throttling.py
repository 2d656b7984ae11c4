"""Which requests use up a quota, and what their responses say."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.config import BrokerConfig
from ottla.network.client_session import ClientSession
from ottla.network.handlers import Handler
from ottla.network.request_context import RequestContext
from ottla.network.throttling import Throttling
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.frames import write_response
from ottla.protocol.messages import messages_of
from ottla.quotas.entity import Entity, Kind
from ottla.security.principal import Principal

PRODUCE, HEARTBEAT, CREATE_TOPICS = 0, 12, 19


class Client:
    """A client named "a" of a broker with quotas."""

    def __init__(self, **quotas: float) -> None:
        self.now_ms = 0
        self.now_ns = 1
        self.is_broker = False
        clock: Any = SimpleNamespace(monotonic_ms=lambda: self.now_ms)
        self.throttling = Throttling(
            BrokerConfig({}), clock, lambda session: self.is_broker, lambda: self.now_ns
        )
        self.session = ClientSession(1, "::1", "L", "", 0, Principal("User", "a"))
        self.response: Any = "its own"
        self.steps: tuple[int, ...] = (0,)
        """How many ms each step of the handler takes."""
        self.set(**quotas)

    def set(self, **quotas: float) -> None:
        kinds = {Kind(key): value for key, value in quotas.items()}
        self.throttling.meters.set(Entity("a"), kinds)
        self.throttling.changed()

    async def handle(self, request: Any, context: Any) -> Any:
        for step_ms in self.steps:
            self.now_ns += step_ms * 1_000_000
            asyncio.get_running_loop().call_soon(self.others_run)
            await asyncio.sleep(0)
        return self.response

    def others_run(self) -> None:
        self.now_ns += 10**12

    async def ask(self, key: int = HEARTBEAT, version: int = 4, size_bytes: int = 0) -> Any:
        if self.response == "its own":
            name = {PRODUCE: "ProduceResponse", HEARTBEAT: "HeartbeatResponse"}[key]
            self.response = getattr(messages_of(key, version), name)()
        self.session.throttle_ms = 0
        context = RequestContext(None, self.session, version, "c", messages_of(key, version))
        handler = Handler(key, version, version, self.handle)
        return await self.throttling.answer(handler, None, context, size_bytes, 0)


async def test_the_bytes_of_a_produce() -> None:
    client = Client(producer_byte_rate=10)
    response = await client.ask(PRODUCE, 9, 200)
    assert response.throttle_time == client.session.throttle_ms == 10_000
    assert client.response.throttle_time == 0  # the handler's own may be kept
    assert client.throttling.throttled == {Kind.PRODUCE: 1}
    assert (await client.ask(HEARTBEAT)).throttle_time == 0


async def test_a_producer_that_wants_no_responses_is_muted() -> None:
    client = Client(producer_byte_rate=10, request_percentage=1)
    client.response, client.steps = None, (1_000,)
    assert await client.ask(PRODUCE, 9, 200) is None
    assert client.session.throttle_ms == 10_000
    client.set(request_percentage=1)
    assert await client.ask(PRODUCE, 9, 200) is None
    assert client.session.throttle_ms == 0


async def test_the_time_of_a_request_is_that_of_its_steps() -> None:
    client = Client(request_percentage=1)
    client.steps = (30, 40)  # of ten seconds 1 % is 100 ms
    assert (await client.ask()).throttle_time == 0
    response = await client.ask()
    # 14 % of a second, over ten seconds: 1.4 % instead of 1.
    assert response.throttle_time == client.session.throttle_ms == 1_000


async def test_a_handler_that_fails_or_is_cancelled_does_so() -> None:
    client = Client(request_percentage=1)

    async def fail(request: Any, context: Any) -> Any:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise ApiError(ErrorCode.request_timed_out) from None

    client.handle = fail  # type: ignore[method-assign]
    asking = asyncio.create_task(client.ask())
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(ApiError):
        await asking


async def test_brokers_have_no_quota() -> None:
    client = Client(producer_byte_rate=1, request_percentage=0.001, controller_mutation_rate=1)
    client.is_broker, client.steps = True, (1_000,)
    assert (await client.ask(PRODUCE, 9, 10**6)).throttle_time == 0
    assert client.session.throttle_ms == 0
    context: Any = SimpleNamespace(session=client.session, client_id="c")
    assert client.throttling.mutations(context, strict=True) is None


@pytest.mark.parametrize("version", [2, 7])
async def test_what_the_controller_answered_mutes_the_client(version: int) -> None:
    client = Client(controller_mutation_rate=1)
    build = messages_of(CREATE_TOPICS, version)
    response = build.CreateTopicsResponse(throttle_time=4_321, topics=())
    frame = memoryview(b"".join(bytes(part) for part in write_response(response, 7)))[4:]
    client.throttling.forwarded(CREATE_TOPICS, version, frame, client.session)
    assert client.session.throttle_ms == 4_321


async def test_mutations_beyond_the_quota_are_refused_or_throttled() -> None:
    client = Client(controller_mutation_rate=1)
    context: Any = SimpleNamespace(session=client.session, client_id="c")
    strict = client.throttling.mutations(context, strict=True)
    assert strict is not None
    strict.charge(13)
    with pytest.raises(ApiError) as refused:
        strict.charge(1)
    assert refused.value.code is ErrorCode.throttling_quota_exceeded
    assert strict.throttle_ms == 2_000
    lenient = client.throttling.mutations(context, strict=False)
    assert lenient is not None
    lenient.charge(1)
    assert lenient.throttle_ms == 3_000


def test_without_quotas_nothing_is_on() -> None:
    client = Client()
    assert not client.throttling.is_on
    assert client.throttling.connected("10.0.0.7") == 0
    client.throttling.connections.set("10.0.0.7", 0.05)
    assert client.throttling.connected("10.0.0.7") == 1_000
    assert not client.throttling.is_on
