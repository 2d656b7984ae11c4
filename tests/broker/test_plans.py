"""Plans against a tree in memory: their order, the fence, and what ends a term."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ottla.broker.cluster_view import ClusterView
from ottla.broker.plans import FENCE_BYTES, Plans, chunks, write_fenced
from ottla.config import BrokerConfig
from ottla.controller import layout
from ottla.controller.image import BrokerVanished, MetadataDelta
from ottla.controller.plan import Plan
from ottla.coordination.embedded import EmbeddedCoordination, EmbeddedTree
from ottla.coordination.tree import (
    MAX_OPERATIONS,
    MAX_REQUEST_BYTES,
    BadVersionError,
    ConnectionLostError,
    Create,
    size_bytes,
)
from ottla.protocol.errors import ApiError, ErrorCode


@pytest.fixture
async def session() -> AsyncIterator[EmbeddedCoordination]:
    tree = EmbeddedTree(None)
    made = await tree.connect()
    await made.create(layout.CONTROLLER_EPOCH, b"1")
    yield made
    await tree.close()


class Term:
    def __init__(self, session: Any) -> None:
        self.view = ClusterView(BrokerConfig())
        self.ends: list[str] = []
        self.plans = Plans(session, self.view, 0, self.ends.append)

    async def do(self, plan: Plan[str]) -> str:
        return await self.plans.carry_out(lambda: plan)


async def test_writes_come_first_then_deltas_then_the_reply(session: EmbeddedCoordination) -> None:
    term, heard = Term(session), []

    async def listen(delta: MetadataDelta) -> None:
        heard.append((delta, await session.exists("/a")))

    term.view.subscribe(listen)
    delta = BrokerVanished(7)
    assert await term.do(Plan("reply", (Create("/a", b"x"),), (delta,))) == "reply"
    ((told, node),) = heard
    assert told == delta
    assert node is not None


async def test_the_next_decider_sees_what_the_one_before_did(session: EmbeddedCoordination) -> None:
    term = Term(session)

    def decide() -> Plan[int]:
        return Plan(term.view.image.version, (), (BrokerVanished(1),))

    assert await asyncio.gather(*(term.plans.carry_out(decide) for _ in range(3))) == [0, 1, 2]


async def test_a_refusal_of_the_decider_ends_nothing(session: EmbeddedCoordination) -> None:
    term = Term(session)

    def refuse() -> Plan[str]:
        raise ApiError(ErrorCode.policy_violation)

    with pytest.raises(ApiError) as caught:
        await term.plans.carry_out(refuse)
    assert caught.value.code is ErrorCode.policy_violation
    assert await term.do(Plan("next")) == "next"
    assert term.ends == []


async def test_another_epoch_in_the_tree_ends_the_term_once(session: EmbeddedCoordination) -> None:
    term = Term(session)
    await session.set(layout.CONTROLLER_EPOCH, b"2")
    plan = Plan("reply", (Create("/a"),), (BrokerVanished(7),))
    for _ in range(2):
        with pytest.raises(ApiError) as caught:
            await term.do(plan)
        assert caught.value.code is ErrorCode.not_controller
    assert len(term.ends) == 1
    assert term.view.image.version == 0
    assert await session.exists("/a") is None


async def test_an_answer_that_does_not_come_ends_the_term(
    session: EmbeddedCoordination, monkeypatch: pytest.MonkeyPatch
) -> None:
    term = Term(session)
    real = session.multi

    async def written_but_unheard(operations: Any) -> None:
        await real(operations)
        raise ConnectionLostError("/a")

    monkeypatch.setattr(session, "multi", written_but_unheard)
    with pytest.raises(ApiError) as caught:
        await term.do(Plan("reply", (Create("/a"),), (BrokerVanished(7),)))
    assert caught.value.code is ErrorCode.not_controller
    assert "ConnectionLost" in term.ends[0]
    assert term.view.image.version == 0


async def test_nothing_begins_after_the_end_and_what_is_under_way_is_finished(
    session: EmbeddedCoordination,
) -> None:
    term = Term(session)
    under_way = asyncio.create_task(term.do(Plan("reply", (Create("/a"),))))
    while not term.plans._turn.locked():
        await asyncio.sleep(0)
    late = asyncio.create_task(term.do(Plan("late")))
    term.plans.end()
    await term.plans.idle()
    assert await under_way == "reply"
    with pytest.raises(ApiError):
        await late
    assert await session.exists("/a") is not None


async def test_a_refusal_after_the_caller_went_away_is_no_unhandled_error(
    session: EmbeddedCoordination,
) -> None:
    unhandled: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    term = Term(session)
    async with term.plans._turn:
        gone = asyncio.create_task(term.do(Plan("late")))
        await asyncio.sleep(0)
        term.plans.end()
        gone.cancel()
        await asyncio.wait([gone])
    await term.plans.idle()
    await asyncio.sleep(0)
    gc.collect()
    assert unhandled == []


async def test_each_part_of_a_large_plan_is_fenced(
    session: EmbeddedCoordination, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, parts = session.multi, []

    async def overtaken_in_between(operations: Any) -> None:
        parts.append(operations)
        await real(operations)
        await session.set(layout.CONTROLLER_EPOCH, b"2")

    monkeypatch.setattr(session, "multi", overtaken_in_between)
    writes = [Create(f"/n{number}") for number in range(MAX_OPERATIONS + 1)]
    with pytest.raises(BadVersionError):
        await write_fenced(session, writes, 0)
    assert len(parts) == 2
    assert await session.exists("/n0") is not None
    assert await session.exists(f"/n{MAX_OPERATIONS}") is None


@pytest.mark.parametrize("data_bytes", [0, 100_000, 2 * MAX_REQUEST_BYTES])
def test_parts_fit_into_requests_and_keep_the_order(data_bytes: int) -> None:
    count = 2_500 if data_bytes == 0 else 25
    writes = [Create(f"/n{number}", bytes(data_bytes)) for number in range(count)]
    parts = list(chunks(writes))
    assert [write for part in parts for write in part] == writes
    for part in parts:
        assert len(part) < MAX_OPERATIONS
        assert len(part) == 1 or sum(map(size_bytes, part)) + FENCE_BYTES <= MAX_REQUEST_BYTES
    assert list(chunks([])) == []


async def test_deltas_that_somebody_here_fails_at_end_the_term(
    session: EmbeddedCoordination,
) -> None:
    """The tree is ahead of the image then: the next term begins with what the tree has."""
    term = Term(session)

    def fail(delta: MetadataDelta) -> None:
        raise ZeroDivisionError

    term.view.subscribe(fail)
    delta = (BrokerVanished(7), BrokerVanished(8))
    with pytest.raises(ZeroDivisionError):
        await term.do(Plan("reply", (Create("/a"),), delta))
    assert await session.exists("/a") is not None
    assert term.ends == ["not all deltas of a plan could be applied"]
    with pytest.raises(ApiError) as refused:
        await term.do(Plan("next"))
    assert refused.value.code is ErrorCode.not_controller
