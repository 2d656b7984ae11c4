"""Request handlers behind faults: which requests meet them, and what their clients get."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.network.client_session import IN_PROCESS, ClientSession
from ottla.network.handlers import EndConnectionError, Handler, Handlers
from ottla.network.request_context import RequestContext
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.testing.controlled.fault_script import FaultScript
from ottla.testing.controlled.faulty_handlers import FaultyHandlers
from ottla.testing.fault_rule import Effect, FaultRule

PRODUCE, HEARTBEAT = 0, 12
VERSION = 3


class Kit:
    """One broker's handlers behind a script; all answer with the response to a heartbeat."""

    def __init__(self) -> None:
        self.script = FaultScript()
        self.handled: list[Any] = []
        self.faulty = FaultyHandlers(Handlers((), self._find), self.script)
        self.session = ClientSession(1, "127.0.0.1", "PLAINTEXT", "127.0.0.1", 9092)

    def _find(self, key: int) -> Handler | None:
        if key == 999:
            return None
        return Handler(
            key,
            0,
            9,
            self._answer,
            is_between_brokers=lambda request: getattr(request, "generation_id", 0) == 99,
        )

    async def _answer(self, request: Any, context: Any) -> Any:
        self.handled.append(request)
        return context.messages.HeartbeatResponse(error_code=ErrorCode.none)

    def add(self, effect: Effect, **rule: Any) -> None:
        self.script.add(FaultRule(**{"api_key": HEARTBEAT, "effect": effect, **rule}))

    async def ask(self, generation: int = 1, session: Any = None) -> Any:
        """The response to a heartbeat. Raises EndConnectionError."""
        request = messages_of(HEARTBEAT, VERSION, "request").HeartbeatRequest(
            group_id="g", generation_id=generation, member_id="m"
        )
        return await self.send(HEARTBEAT, VERSION, request, session)

    async def send(self, key: int, version: int, request: Any, session: Any = None) -> Any:
        """Raises EndConnectionError."""
        context: Any = RequestContext(
            broker=SimpleNamespace(clock=SimpleNamespace(now_ms=lambda: 5)),
            session=session or self.session,
            version=version,
            client_id="app",
            messages=messages_of(key, version),
        )
        handler = self.faulty.handlers.find(key)
        assert handler is not None
        return await handler.answer(request, context)


@pytest.fixture
def kit() -> Kit:
    return Kit()


async def test_without_faults_the_handler_answers_and_the_request_is_listed(kit: Kit) -> None:
    assert (await kit.ask()).error_code is ErrorCode.none
    (received,) = kit.script.received()
    assert (received.api, received.version, received.fault) == ("Heartbeat", VERSION, None)


async def test_an_error_keeps_the_request_from_the_handler(kit: Kit) -> None:
    code = ErrorCode.rebalance_in_progress
    kit.add(Effect.ERROR, error_code=int(code), times=1)
    assert (await kit.ask()).error_code is code
    assert kit.handled == []
    assert (await kit.ask()).error_code is ErrorCode.none


async def test_an_error_after_the_request_was_carried_out(kit: Kit) -> None:
    kit.add(Effect.ERROR, error_code=int(ErrorCode.request_timed_out), is_after=True)
    assert (await kit.ask()).error_code is ErrorCode.request_timed_out
    assert len(kit.handled) == 1


@pytest.mark.parametrize("is_after", [False, True])
async def test_a_connection_ends_before_or_after_the_request(kit: Kit, is_after: bool) -> None:
    kit.add(Effect.DISCONNECT, is_after=is_after)
    with pytest.raises(EndConnectionError):
        await kit.ask()
    assert len(kit.handled) == is_after


async def test_a_request_without_a_response_waits_until_the_broker_stops(kit: Kit) -> None:
    kit.add(Effect.NO_RESPONSE)
    asked = [asyncio.ensure_future(kit.ask()) for _ in range(2)]
    await asyncio.sleep(0)
    assert not any(each.done() for each in asked)
    # One client gives up; the other one goes on waiting.
    asked[0].cancel()
    await asyncio.sleep(0)
    assert not asked[1].done()
    kit.faulty.close()
    with pytest.raises(EndConnectionError):
        await asked[1]


async def test_a_throttled_connection_is_not_read_and_others_are(kit: Kit) -> None:
    kit.add(Effect.THROTTLE, wait_ms=60_000, times=1)
    assert (await kit.ask()).throttle_time == 60_000
    muted = asyncio.ensure_future(kit.ask())
    other = ClientSession(2, "127.0.0.1", "PLAINTEXT", "127.0.0.1", 9092)
    await kit.ask(session=other)
    assert not muted.done()
    assert len(kit.handled) == 2
    muted.cancel()


async def test_brokers_meet_no_fault(kit: Kit) -> None:
    kit.add(Effect.DISCONNECT)
    await kit.ask(generation=99)
    await kit.ask(session=IN_PROCESS)
    assert len(kit.handled) == 2
    assert kit.script.count == 0


def test_requests_that_clients_do_not_send_have_their_own_handlers(kit: Kit) -> None:
    find = kit.faulty.handlers.find
    for key in (20_000, 20_001):
        handler = find(key)
        assert handler is not None
        assert handler.answer == kit._answer
    assert find(999) is None


async def test_an_acks_0_request_has_no_response_that_could_carry_the_error(kit: Kit) -> None:
    kit.add(Effect.ERROR, api_key=PRODUCE, error_code=int(ErrorCode.not_leader_or_follower))
    build = messages_of(PRODUCE, 9, "request")
    request = build.ProduceRequest(acks=0, timeout=1_000, topic_data=())
    with pytest.raises(EndConnectionError):
        await kit.send(PRODUCE, 9, request)
    assert kit.handled == []
