"""Questions to share coordinators, here and on other brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import pytest

from ottla.coordinator import share_persister
from ottla.coordinator.share_persister import SharePersister
from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.share.record_state import RecordState
from ottla.share.shard import Summary
from ottla.share.share_partition import StoredState, Write
from ottla.share.state_batch import StateBatch
from ottla.share.stored import ShareKey

HERE = ShareKey("here", UUID(int=7), 0)
THERE = ShareKey("there", UUID(int=7), 0)
ACKED = StateBatch(5, 6, RecordState.ACKNOWLEDGED, 1)
OK = ErrorCode.none
RESULTS = {
    83: ("InitializeShareGroupState", "InitializeStateResult"),
    84: ("ReadShareGroupState", "ReadStateResult"),
    85: ("WriteShareGroupState", "WriteStateResult"),
    86: ("DeleteShareGroupState", "DeleteStateResult"),
    87: ("ReadShareGroupStateSummary", "ReadStateSummaryResult"),
}


class Bench:
    """Broker 1 is this one and coordinates the group "here"; others are coordinated by 2."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.created = 0
        self.errors: list[ErrorCode] = []
        """The next answers, then OK."""
        self.local: list[tuple[str, Any]] = []
        self.requests: list[Any] = []
        self.unreachable = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.state_number = 2
        self.persister = SharePersister(
            self,  # type: ignore[arg-type]
            self,
            self.ask,
            own_id=1,
            clock=clock,
        )

    def __getattr__(self, name: str) -> Any:
        """The coordinator of this broker."""

        async def answer(*asked: Any) -> Any:
            self.local.append((name, asked))
            self.clock.time_ms += 10
            error = self.errors.pop(0) if self.errors else OK
            if error is not OK:
                raise ApiError(error)
            return name

        return answer

    def broker(self, key: ShareKey) -> int | None:
        if key.group_id == "nowhere" and self.created < 2:
            return None
        return 1 if key.group_id in ("here", "nowhere") else 2

    async def create(self) -> None:
        self.created += 1

    async def ask(self, broker_id: int, request: Any) -> Any:
        assert broker_id == 2
        self.requests.append(request)
        await self.gate.wait()
        self.clock.time_ms += 10
        if self.unreachable:
            self.unreachable -= 1
            raise PeerError("cut")
        error = self.errors.pop(0) if self.errors else OK
        build = messages_of(request.__api_key__, request.__version__)
        name, topic_struct = RESULTS[request.__api_key__]
        fields: dict[str, Any] = {}
        if request.__api_key__ == 84:
            batch = build.StateBatch(
                first_offset=5, last_offset=6, delivery_state=self.state_number, delivery_count=1
            )
            fields = {"state_epoch": 1, "start_offset": 5, "state_batches": (batch,)}
        if request.__api_key__ == 87:
            fields = Summary(1, 2, 3, 4)._asdict()
        return getattr(build, f"{name}Response")(
            results=tuple(
                getattr(build, topic_struct)(
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        build.PartitionResult(
                            partition=each.partition,
                            error_code=error,
                            error_message=None if error is OK else "because",
                            **fields,
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )


@pytest.fixture
async def shares(clock: Any) -> AsyncIterator[Bench]:
    bench = Bench(clock)
    yield bench
    bench.persister.close()


async def test_the_coordinator_here_is_called(shares: Bench) -> None:
    persister = shares.persister
    await persister.initialize(HERE, 1, 5)
    await persister.write(HERE, 1, 3, Write(5, 2, [ACKED]))
    answers: list[Any] = [await persister.read(HERE, 3), await persister.summary(HERE)]
    assert answers == ["read", "summary"]
    await persister.delete(HERE)
    assert [name for name, _ in shares.local] == [
        "initialize", "write", "read", "summary", "delete",
    ]  # fmt: skip
    assert shares.local[1][1] == (HERE, 1, 3, Write(5, 2, [ACKED]))


async def test_a_coordinator_elsewhere_is_asked(shares: Bench) -> None:
    persister = shares.persister
    await persister.initialize(THERE, 1, 5)
    await persister.write(THERE, 1, 3, Write(5, 2, [ACKED]))
    assert await persister.read(THERE, 3) == StoredState(1, 5, [ACKED])
    assert await persister.summary(THERE) == Summary(1, 2, 3, 4)
    await persister.delete(THERE)
    assert [each.__api_key__ for each in shares.requests] == [83, 85, 84, 87, 86]
    written = shares.requests[1].topics[0].partitions[0]
    assert (written.state_epoch, written.leader_epoch, written.start_offset) == (1, 3, 5)
    assert written.delivery_complete_count == 2
    (batch,) = written.state_batches
    assert (batch.first_offset, batch.last_offset, batch.delivery_state) == (5, 6, 2)


async def test_what_is_asked_meanwhile_goes_into_the_next_request(shares: Bench) -> None:
    shares.gate.clear()
    keys = [THERE._replace(partition=index) for index in range(4)]
    asking = [asyncio.create_task(shares.persister.delete(keys[0]))]
    await asyncio.sleep(0.01)
    again = [*keys[1:], keys[1]]
    asking += [asyncio.create_task(shares.persister.delete(key)) for key in again]
    await asyncio.sleep(0.01)
    assert len(shares.requests) == 1
    shares.gate.set()
    await asyncio.gather(*asking)
    found = [
        [each.partition for each in request.topics[0].partitions] for request in shares.requests
    ]
    assert found == [[0], [1, 2, 3], [1]]


@pytest.mark.parametrize("code", sorted(share_persister.AGAIN))
@pytest.mark.parametrize("key", [HERE, THERE])
async def test_what_passes_by_itself_is_asked_again(
    shares: Bench, code: ErrorCode, key: ShareKey
) -> None:
    shares.errors = [code, code]
    await shares.persister.delete(key)
    assert len(shares.requests) + len(shares.local) == 3


async def test_a_broker_that_cannot_be_reached_is_asked_again(shares: Bench) -> None:
    shares.unreachable = 2
    unanswered: list[int] = []
    await shares.persister.delete(THERE, unanswered=lambda: unanswered.append(1))
    assert len(shares.requests) == 3
    assert len(unanswered) == 2
    shares.errors = [ErrorCode.not_coordinator]
    await shares.persister.delete(THERE, unanswered=lambda: unanswered.append(1))
    assert len(unanswered) == 2


async def test_a_topic_that_does_not_exist_is_created(shares: Bench) -> None:
    await shares.persister.delete(HERE._replace(group_id="nowhere"))
    assert shares.created == 2


@pytest.mark.parametrize("key", [HERE, THERE])
async def test_an_error_that_does_not_pass_is_the_answer(shares: Bench, key: ShareKey) -> None:
    shares.errors = [ErrorCode.fenced_leader_epoch]
    with pytest.raises(ApiError) as caught:
        await shares.persister.read(key, 3)
    assert caught.value.code is ErrorCode.fenced_leader_epoch


async def test_the_time_is_limited(shares: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_persister, "LIMIT_MS", 100)
    shares.errors = [ErrorCode.not_coordinator] * 50
    with pytest.raises(ApiError) as caught:
        await shares.persister.delete(HERE)
    assert caught.value.code is ErrorCode.not_coordinator
    assert 2 <= len(shares.local) <= 10


async def test_a_state_that_is_never_stored_is_an_error(shares: Bench) -> None:
    shares.state_number = 1
    with pytest.raises(ApiError) as caught:
        await shares.persister.read(THERE, 3)
    assert caught.value.code is ErrorCode.unknown_server_error


async def test_close_ends_what_waits(shares: Bench, eventually: Callable[..., Any]) -> None:
    shares.gate.clear()
    asking = asyncio.create_task(shares.persister.delete(THERE))
    await eventually(lambda: shares.requests)
    shares.clock.time_ms += share_persister.LIMIT_MS
    shares.persister.close()
    with pytest.raises(ApiError) as caught:
        await asking
    assert caught.value.code is ErrorCode.network_exception


@pytest.mark.parametrize("key", [HERE, THERE])
async def test_what_is_not_wanted_any_more_is_not_asked_again(shares: Bench, key: ShareKey) -> None:
    shares.errors = [ErrorCode.coordinator_load_in_progress]
    answers = iter((True, True, False) if key is THERE else (True, False))
    with pytest.raises(ApiError) as refused:
        await shares.persister.delete(key, lambda: next(answers))
    assert refused.value.code is ErrorCode.not_coordinator
    assert len(shares.local) + len(shares.requests) == 1


async def test_what_is_not_wanted_any_more_is_not_sent(shares: Bench) -> None:
    """It waited for the answer to a request before it."""
    shares.gate.clear()
    first = asyncio.create_task(shares.persister.delete(THERE))
    await asyncio.sleep(0)
    is_wanted = True
    second = asyncio.create_task(
        shares.persister.delete(THERE._replace(partition=1), lambda: is_wanted)
    )
    await asyncio.sleep(0)
    is_wanted = False
    shares.gate.set()
    await first
    with pytest.raises(ApiError) as refused:
        await second
    assert refused.value.code is ErrorCode.not_coordinator
    assert len(shares.requests) == 1


async def test_a_request_has_only_so_many_batches(
    shares: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for one partition, which has its own limit."""
    monkeypatch.setattr(share_persister, "MAX_BATCHES", 3)
    shares.gate.clear()
    asking = []
    for index, count in enumerate((1, 5, 2, 1, 0, 1)):
        key = THERE._replace(partition=index)
        write = Write(5, 0, [ACKED] * count)
        asking.append(asyncio.create_task(shares.persister.write(key, 1, 3, write)))
        await asyncio.sleep(0)
    shares.gate.set()
    await asyncio.gather(*asking)
    assert [
        [each.partition for topic in request.topics for each in topic.partitions]
        for request in shares.requests
    ] == [[0], [1], [2, 3, 4], [5]]
