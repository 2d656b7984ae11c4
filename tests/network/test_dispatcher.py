"""The path of one request, without connections (`test_listener` has bad bytes of every kind)."""

import asyncio
import gc
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.config import BrokerConfig
from ottla.network.client_session import ClientSession
from ottla.network.dispatcher import Dispatcher
from ottla.network.envelope import wrapped
from ottla.network.handlers import EndConnectionError, Handler, Handlers, always
from ottla.network.request_context import RequestContext
from ottla.network.throttling import Throttling
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import read_response, write_request
from ottla.protocol.message_budget import LOOP
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import METADATA_DELTAS
from ottla.runtime.clock import SystemClock
from ottla.runtime.cpu_thread import CpuThread
from ottla.runtime.garbage_collection import NEVER
from ottla.runtime.turns import MAX_A_TURN
from ottla.security.principal import ANONYMOUS, Principal

HEARTBEAT, API_VERSIONS, DELETE_TOPICS, ENVELOPE = 12, 18, 20, 58
LIST_OFFSETS, ALLOCATE_PRODUCER_IDS = 2, 67
SYNC_GROUP = 14
ALICE = Principal("User", "alice")


class Bench:
    """A dispatcher whose handlers record the clients."""

    def __init__(self, *, is_controller: bool = True) -> None:
        self.contexts: list[RequestContext[Any]] = []
        self.asks_as_broker = True
        self.suspects: list[str] = []
        """The addresses of those that only a broker may be."""
        self.forwarded: list[tuple[int, bytes, ClientSession]] = []
        self.forwarding: Any = SimpleNamespace(is_controller=is_controller, forward=self.forward)
        self.elsewhere: bytes | None = b"the controller's answer"
        handlers = {key: Handler(key, 0, 6, self.answer) for key in (HEARTBEAT, DELETE_TOPICS)}
        handlers[API_VERSIONS] = Handler(API_VERSIONS, 0, 4, self.answer)
        handlers[ALLOCATE_PRODUCER_IDS] = Handler(
            ALLOCATE_PRODUCER_IDS, 0, 0, self.answer, is_between_brokers=always
        )
        handlers[METADATA_DELTAS] = Handler(
            METADATA_DELTAS, 0, 0, self.answer, True, is_between_brokers=always
        )
        handlers[LIST_OFFSETS] = Handler(
            LIST_OFFSETS, 1, 11, self.answer, is_between_brokers=lambda each: each.replica_id >= 0
        )
        handlers[SYNC_GROUP] = Handler(SYNC_GROUP, 0, 5, self.answer, takes_turns=True)
        self.cpu_thread = CpuThread()
        self.dispatcher = Dispatcher(
            "the parts",
            Handlers((), handlers.get),
            self.forwarding,
            cpu_thread=self.cpu_thread,
            throttling=Throttling(BrokerConfig({}), SystemClock(), self.is_broker),
            is_broker=self.is_broker,
        )

    def is_broker(self, session: ClientSession) -> bool:
        self.suspects.append(session.host)
        return self.asks_as_broker

    async def answer(self, request: Any, context: RequestContext[Any]) -> Any:
        self.contexts.append(context)
        build = context.messages
        if build.key == API_VERSIONS:
            assert request is None
            return build.ApiVersionsResponse(error_code=35)
        if build.key == HEARTBEAT:
            return build.HeartbeatResponse(throttle_time=5)
        if build.key == ALLOCATE_PRODUCER_IDS:
            return build.AllocateProducerIdsResponse(producer_id_start=1, producer_id_len=2)
        if build.key == LIST_OFFSETS:
            return build.ListOffsetsResponse(topics=())
        if build.key == SYNC_GROUP:
            return build.SyncGroupResponse(error_code=0)
        return build.DeleteTopicsResponse(throttle_time=5, responses=())

    async def forward(self, key: int, frame: Any, session: ClientSession) -> bytes | None:
        self.forwarded.append((key, bytes(frame), session))
        return self.elsewhere

    async def ask(self, request: Any, principal: Principal = ANONYMOUS) -> bytes:
        session = ClientSession(3, "192.0.2.7", "PLAINTEXT", "there", 9092, principal)
        parts = await self.dispatcher.answer(frame_of(request), session)
        answer = b"".join(parts)
        assert int.from_bytes(answer[:4], "big") == len(answer) - 4
        return answer[4:]


def frame_of(request: Any) -> bytes:
    return write_request(request, 77, "the client")[4:]


def beat(version: int = 4) -> Any:
    return messages_of(HEARTBEAT, version, "request").HeartbeatRequest(group_id="g")


def delete() -> Any:
    return messages_of(DELETE_TOPICS, 6, "request").DeleteTopicsRequest(timeout=1)


def in_envelope(request: Any, host: str = "192.0.2.9") -> Any:
    session = ClientSession(8, host, "PLAINTEXT", "", 0, ALICE)
    return wrapped(frame_of(request), session)


async def test_a_handler_gets_the_clients_session() -> None:
    bench = Bench()
    correlation_id, response = read_response(HEARTBEAT, 3, await bench.ask(beat(3), ALICE))
    assert (correlation_id, response.throttle_time) == (77, 5)
    (context,) = bench.contexts
    assert (context.broker, context.version, context.client_id) == ("the parts", 3, "the client")
    assert (context.session.address, context.session.principal) == ("/192.0.2.7", ALICE)
    assert bench.dispatcher.requests == {HEARTBEAT: 1}


async def test_controller_requests_are_forwarded_with_the_client() -> None:
    bench = Bench(is_controller=False)
    assert await bench.ask(delete(), ALICE) == b"the controller's answer"
    ((key, frame, session),) = bench.forwarded
    assert (key, frame, session.principal) == (DELETE_TOPICS, frame_of(delete()), ALICE)
    assert bench.suspects == []
    await bench.ask(beat())
    assert len(bench.contexts) == len(bench.forwarded) == 1


async def test_a_request_overtakes_many_that_take_turns() -> None:
    bench = Bench()
    sync = messages_of(SYNC_GROUP, 5, "request").SyncGroupRequest(group_id="g", assignments=())
    # As of one poll of the sockets: all have arrived.
    many = [asyncio.create_task(bench.ask(sync)) for _ in range(3 * MAX_A_TURN)]
    await asyncio.create_task(bench.ask(beat()))
    assert bench.dispatcher.requests == {SYNC_GROUP: 3 * MAX_A_TURN, HEARTBEAT: 1}
    assert sum(each.messages.key == SYNC_GROUP for each in bench.contexts) <= 2 * MAX_A_TURN
    await asyncio.gather(*many)
    assert len(bench.contexts) == 3 * MAX_A_TURN + 1


async def test_requests_of_one_connection_share_a_context() -> None:
    bench = Bench()
    session = ClientSession(3, "192.0.2.7", "PLAINTEXT", "there", 9092)
    for request, client_id in ((beat(), "a"), (beat(), "a"), (beat(), "b"), (beat(3), "b")):
        frame = write_request(request, 77, client_id)[4:]
        await bench.dispatcher.answer(frame, session)
    seen = [(each.client_id, each.version) for each in bench.contexts]
    assert seen == [("a", 4), ("a", 4), ("b", 4), ("b", 3)]
    assert bench.contexts[0] is bench.contexts[1]
    assert len(session.contexts) == 2


async def test_unknown_versions_of_api_versions_use_no_memory() -> None:
    bench = Bench()
    session = ClientSession(3, "192.0.2.7", "PLAINTEXT", "there", 9092)
    for version in (7, 99, -1, -5):
        frame = b"\0\x12" + version.to_bytes(2, "big", signed=True) + bytes(4) + b"\xff\xff"
        answer = b"".join(await bench.dispatcher.answer(frame, session))
        assert answer[4:10] == bytes(4) + b"\0\x23"
    assert len(session.contexts) == 1


async def test_only_valid_requests_are_forwarded() -> None:
    bench = Bench(is_controller=False)
    session = ClientSession(3, "192.0.2.7", "PLAINTEXT", "there", 9092)
    with pytest.raises(EndConnectionError, match="DeleteTopicsRequest: the bytes end"):
        await bench.dispatcher.answer(frame_of(delete())[:-3], session)
    assert bench.forwarded == []


async def test_a_broker_that_becomes_the_controller_answers_itself() -> None:
    bench = Bench(is_controller=False)
    bench.elsewhere = None
    _, response = read_response(DELETE_TOPICS, 6, await bench.ask(delete()))
    assert response.throttle_time == 5


async def test_the_controller_answers_envelopes_to_the_sender() -> None:
    bench = Bench()
    correlation_id, response = read_response(ENVELOPE, 0, await bench.ask(in_envelope(delete())))
    assert (correlation_id, response.error_code) == (77, ErrorCode.none)
    inner_id, inside = read_response(DELETE_TOPICS, 6, response.response_data)
    assert (inner_id, inside.throttle_time) == (77, 5)
    (context,) = bench.contexts
    assert (context.session.host, context.session.principal) == ("192.0.2.9", ALICE)
    assert context.client_id == "the client"
    assert bench.suspects == ["192.0.2.7"]  # who sent the envelope, not who asked


async def test_a_deposed_controller_rejects_envelopes() -> None:
    bench = Bench(is_controller=False)
    _, response = read_response(ENVELOPE, 0, await bench.ask(in_envelope(delete())))
    assert (response.error_code, response.response_data) == (ErrorCode.not_controller, None)
    assert bench.contexts == []
    assert bench.forwarded == []


async def test_only_controller_requests_are_accepted_in_envelopes() -> None:
    bench = Bench()
    for inside in (beat(), in_envelope(delete())):
        with pytest.raises(EndConnectionError, match="is not a request for the controller"):
            await bench.ask(in_envelope(inside))
    assert bench.contexts == []


def long_delete(count: int) -> Any:
    build = messages_of(DELETE_TOPICS, 5, "request")
    return build.DeleteTopicsRequest(topic_names=("t",) * count, timeout=1)


class Threads(Bench):
    """Notes when full collections run, and answers with a result for each topic."""

    def __init__(self) -> None:
        super().__init__()
        self.thresholds: list[int] = []

    async def answer(self, request: Any, context: RequestContext[Any]) -> Any:
        self.contexts.append(context)
        self.thresholds.append(gc.get_threshold()[2])
        build = context.messages
        result = build.DeletableTopicResult(name="t")
        return build.DeleteTopicsResponse(responses=(result,) * len(request.topic_names))


@pytest.mark.parametrize("count", [1, LOOP.elements, LOOP.elements + 1])
async def test_only_long_messages_use_the_thread(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, ran = Threads(), []
    right = CpuThread.run

    async def run(self: CpuThread, work: Any) -> Any:
        ran.append(work.func.__name__)
        return await right(self, work)

    monkeypatch.setattr(CpuThread, "run", run)
    _, response = read_response(DELETE_TOPICS, 5, await bench.ask(long_delete(count)))
    assert len(response.responses) == count
    assert ran == (["_read", "write_response"] if count > LOOP.elements else [])
    bench.cpu_thread.close()


async def test_no_full_collection_runs_beside_a_long_request() -> None:
    """It would look at each of the request's objects, without a pause."""
    bench, usual = Threads(), gc.get_threshold()
    for count in (LOOP.elements, LOOP.elements + 1):
        await bench.ask(long_delete(count))
        assert gc.get_threshold() == usual
    assert bench.thresholds == [usual[2], NEVER]
    with pytest.raises(EndConnectionError):
        await bench.ask(long_delete(1_000_001))
    assert gc.get_threshold() == usual
    bench.cpu_thread.close()


async def test_a_long_request_in_an_envelope() -> None:
    bench = Threads()
    asked = in_envelope(long_delete(LOOP.elements + 1))
    _, response = read_response(ENVELOPE, 0, await bench.ask(asked))
    _, inside = read_response(DELETE_TOPICS, 5, response.response_data)
    assert len(inside.responses) == LOOP.elements + 1
    bench.cpu_thread.close()


async def test_a_request_beyond_all_limits_ends_its_connection() -> None:
    bench = Threads()
    with pytest.raises(EndConnectionError, match="more than 100,000 elements"):
        await bench.ask(long_delete(100_001))
    bench.cpu_thread.close()


REFUSED = ErrorCode.cluster_authorization_failed


async def test_what_only_brokers_send_is_refused_before_it_is_decoded() -> None:
    bench = Bench(is_controller=False)
    bench.asks_as_broker = False
    session = ClientSession(3, "192.0.2.7", "PLAINTEXT", "there", 9092)

    async def answer_to(key: int, body: bytes) -> bytes:
        header = key.to_bytes(2, "big") + bytes(2) + (77).to_bytes(4, "big") + b"\xff\xff"
        frame = header + body
        return b"".join(await bench.dispatcher.answer(frame, session))[4:]

    nonsense = bytes([0, 255, 255])
    _, refused = read_response(ALLOCATE_PRODUCER_IDS, 0, await answer_to(67, nonsense))
    assert refused.error_code is REFUSED
    _, refused = read_response(ENVELOPE, 0, await answer_to(ENVELOPE, nonsense))
    assert refused.error_code is REFUSED
    assert await answer_to(METADATA_DELTAS, b"{") == (
        (77).to_bytes(4, "big") + b'{"error": "cluster_authorization_failed"}'
    )
    assert not bench.contexts
    assert not bench.forwarded


async def test_what_a_replica_asks_is_refused_to_a_client() -> None:
    build = messages_of(LIST_OFFSETS, 8, "request")
    topic = build.ListOffsetsTopic(
        name="t", partitions=(build.ListOffsetsPartition(partition_index=3, timestamp=-1),)
    )
    bench = Bench()
    for replica_id, is_broker, code in ((2, False, REFUSED), (2, True, None), (-1, False, None)):
        bench.asks_as_broker = is_broker
        asked = build.ListOffsetsRequest(replica_id=replica_id, topics=(topic,))
        _, response = read_response(LIST_OFFSETS, 8, await bench.ask(asked))
        codes = [each.error_code for named in response.topics for each in named.partitions]
        assert codes == ([code] if code else [])
    assert len(bench.contexts) == 2


async def test_the_requests_of_brokers_are_not_forwarded() -> None:
    bench = Bench(is_controller=False)
    build = messages_of(ALLOCATE_PRODUCER_IDS, 0, "request")
    asked = build.AllocateProducerIdsRequest(broker_id=2, broker_epoch=1)
    _, response = read_response(ALLOCATE_PRODUCER_IDS, 0, await bench.ask(asked))
    assert response.producer_id_start == 1
    assert bench.forwarded == []


async def test_an_envelope_holds_no_request_of_a_broker() -> None:
    bench = Bench()
    build = messages_of(ALLOCATE_PRODUCER_IDS, 0, "request")
    inside = build.AllocateProducerIdsRequest(broker_id=2, broker_epoch=1)
    for each in (inside, in_envelope(delete())):
        with pytest.raises(EndConnectionError, match="is not a request for the controller"):
            await bench.ask(in_envelope(each))
    assert bench.contexts == []
