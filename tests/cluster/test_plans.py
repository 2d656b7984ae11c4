"""Plans on a tree in memory: their order, the fence, and what ends a tenure."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ottla.cluster.cluster_view import ClusterView
from ottla.cluster.plans import (
    FENCE_BYTES,
    OutcomeUnknownError,
    PartlyWrittenError,
    Plans,
    chunks,
    write_fenced,
)
from ottla.config import BrokerConfig
from ottla.controller import layout
from ottla.controller.image import BrokerVanished, MetadataDelta
from ottla.controller.plan import Plan, Steps
from ottla.coordination.embedded import EmbeddedCoordination, EmbeddedTree
from ottla.coordination.tree import (
    MAX_OPERATIONS,
    MAX_REQUEST_BYTES,
    BadVersionError,
    ConnectionLostError,
    CoordinationError,
    Create,
    Limits,
    NodeExistsError,
    SessionExpiredError,
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


class Tenure:
    def __init__(self, session: Any) -> None:
        self.view = ClusterView(BrokerConfig())
        self.ends: list[str] = []
        self.plans = Plans(session, self.view, 0, self.ends.append)

    async def do(self, plan: Plan[str]) -> str:
        return await self.plans.carry_out(lambda: plan)


async def test_writes_precede_deltas_and_deltas_precede_the_reply(
    session: EmbeddedCoordination,
) -> None:
    tenure, received = Tenure(session), []

    async def listen(delta: MetadataDelta) -> None:
        received.append((delta, await session.exists("/a")))

    tenure.view.subscribe(listen)
    delta = BrokerVanished(7)
    assert await tenure.do(Plan("reply", (Create("/a", b"x"),), (delta,))) == "reply"
    ((notified, node),) = received
    assert notified == delta
    assert node is not None


async def test_the_next_decider_sees_the_previous_change(session: EmbeddedCoordination) -> None:
    tenure = Tenure(session)

    def decide() -> Plan[int]:
        return Plan(tenure.view.image.version, (), (BrokerVanished(1),))

    assert await asyncio.gather(*(tenure.plans.carry_out(decide) for _ in range(3))) == [0, 1, 2]


async def test_a_refusal_does_not_end_the_tenure(session: EmbeddedCoordination) -> None:
    tenure = Tenure(session)

    def refuse() -> Plan[str]:
        raise ApiError(ErrorCode.policy_violation)

    with pytest.raises(ApiError) as caught:
        await tenure.plans.carry_out(refuse)
    assert caught.value.code is ErrorCode.policy_violation
    assert await tenure.do(Plan("next")) == "next"
    assert tenure.ends == []


async def test_another_epoch_in_the_tree_ends_the_tenure_once(
    session: EmbeddedCoordination,
) -> None:
    tenure = Tenure(session)
    await session.set(layout.CONTROLLER_EPOCH, b"2")
    plan = Plan("reply", (Create("/a"),), (BrokerVanished(7),))
    for _ in range(2):
        with pytest.raises(ApiError) as caught:
            await tenure.do(plan)
        assert caught.value.code is ErrorCode.not_controller
    assert len(tenure.ends) == 1
    assert tenure.view.image.version == 0
    assert await session.exists("/a") is None


async def test_a_lost_response_ends_the_tenure(
    session: EmbeddedCoordination, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenure = Tenure(session)
    real = session.multi

    async def write_and_lose_the_response(operations: Any) -> None:
        await real(operations)
        raise ConnectionLostError("/a")

    monkeypatch.setattr(session, "multi", write_and_lose_the_response)
    with pytest.raises(ApiError) as caught:
        await tenure.do(Plan("reply", (Create("/a"),), (BrokerVanished(7),)))
    assert caught.value.code is ErrorCode.not_controller
    assert "ConnectionLost" in tenure.ends[0]
    assert tenure.view.image.version == 0


async def test_a_running_plan_finishes_and_no_other_starts_after_the_end(
    session: EmbeddedCoordination,
) -> None:
    tenure = Tenure(session)
    under_way = asyncio.create_task(tenure.do(Plan("reply", (Create("/a"),))))
    while not tenure.plans._turn.locked():
        await asyncio.sleep(0)
    late = asyncio.create_task(tenure.do(Plan("late")))
    tenure.plans.end()
    await tenure.plans.idle()
    assert await under_way == "reply"
    with pytest.raises(ApiError):
        await late
    assert await session.exists("/a") is not None


async def test_a_refusal_without_its_caller_is_not_an_unhandled_error(
    session: EmbeddedCoordination,
) -> None:
    unhandled: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    tenure = Tenure(session)
    async with tenure.plans._turn:
        gone = asyncio.create_task(tenure.do(Plan("late")))
        await asyncio.sleep(0)
        tenure.plans.end()
        gone.cancel()
        await asyncio.wait([gone])
    await tenure.plans.idle()
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
    _cut(monkeypatch, session)
    writes = [Create(f"/n{number}") for number in range(3)]
    with pytest.raises(PartlyWrittenError) as caught:
        await write_fenced(session, writes, 0)
    assert isinstance(caught.value.__cause__, BadVersionError)
    assert len(parts) == 2
    assert await session.exists("/n0") is not None
    assert await session.exists("/n2") is None


def _cut(patch: pytest.MonkeyPatch, session: EmbeddedCoordination) -> None:
    """The session takes three operations at a time."""
    patch.setattr(type(session), "limits", Limits(3))


async def test_without_limits_a_plan_is_written_at_once(
    session: EmbeddedCoordination, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = [Create(f"/n{number}") for number in range(MAX_OPERATIONS)]
    with pytest.raises(NodeExistsError):
        await write_fenced(session, [*writes, writes[0]], 0)
    assert await session.exists("/n0") is None


async def test_the_outcome_of_a_plan_is_unknown_if_only_its_first_writes_were_done(
    session: EmbeddedCoordination, monkeypatch: pytest.MonkeyPatch
) -> None:
    _cut(monkeypatch, session)
    writes = [Create(f"/n{number}") for number in range(4)]
    for last, unknown in ((writes[0], True), (writes[1], False)):
        # The second time the first part fails already.
        tenure = Tenure(session)
        with pytest.raises(ApiError) as caught:
            await tenure.do(Plan("reply", (*writes, last)))
        assert caught.value.code is ErrorCode.not_controller
        assert isinstance(caught.value, OutcomeUnknownError) is unknown
        assert len(tenure.ends) == 1
    assert await session.exists("/n3") is not None


async def test_a_write_that_is_too_large_is_refused(
    session: EmbeddedCoordination, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZooKeeper would end the connection."""
    monkeypatch.setattr(type(session), "limits", Limits(size_bytes=1_000))
    tenure = Tenure(session)
    plan = Plan("reply", (Create("/a"), Create("/a/b", bytes(900))), (BrokerVanished(7),))
    with pytest.raises(ApiError, match="/a/b") as caught:
        await tenure.do(plan)
    assert caught.value.code is ErrorCode.policy_violation
    assert tenure.ends == []
    assert tenure.view.image.version == 0
    assert await session.exists("/a") is None
    assert await tenure.do(Plan("next", (Create("/c", bytes(700)),))) == "next"


@pytest.mark.parametrize("error", [ConnectionLostError, SessionExpiredError])
async def test_the_outcome_is_unknown_without_a_response(
    session: EmbeddedCoordination,
    monkeypatch: pytest.MonkeyPatch,
    error: type[CoordinationError],
) -> None:
    async def lose(operations: Any) -> None:
        raise error("/")

    monkeypatch.setattr(session, "multi", lose)
    with pytest.raises(OutcomeUnknownError):
        await Tenure(session).do(Plan("reply", (Create("/a"),)))


@pytest.mark.parametrize("data_bytes", [0, 100_000, 2 * MAX_REQUEST_BYTES])
def test_chunks_fit_into_requests_and_keep_the_order(data_bytes: int) -> None:
    count = 2_500 if data_bytes == 0 else 25
    writes = [Create(f"/n{number}", bytes(data_bytes)) for number in range(count)]
    parts = list(chunks(writes, Limits()))
    assert [write for part in parts for write in part] == writes
    for part in parts:
        assert len(part) < MAX_OPERATIONS
        assert len(part) == 1 or sum(map(size_bytes, part)) + FENCE_BYTES <= MAX_REQUEST_BYTES
    assert list(chunks([], Limits())) == []
    assert list(chunks(writes, None)) == [writes]
    assert list(chunks([], None)) == []


async def test_a_failed_subscriber_ends_the_tenure(
    session: EmbeddedCoordination,
) -> None:
    """The tree is then ahead of the image: the next tenure loads the tree."""
    tenure = Tenure(session)

    def fail(delta: MetadataDelta) -> None:
        raise ZeroDivisionError

    tenure.view.subscribe(fail)
    delta = (BrokerVanished(7), BrokerVanished(8))
    with pytest.raises(ZeroDivisionError):
        await tenure.do(Plan("reply", (Create("/a"),), delta))
    assert await session.exists("/a") is not None
    assert tenure.ends == ["not all deltas of a plan could be applied"]
    with pytest.raises(ApiError) as refused:
        await tenure.do(Plan("next"))
    assert refused.value.code is ErrorCode.not_controller


async def test_a_decision_in_steps_ends_with_the_tenure(session: EmbeddedCoordination) -> None:
    """After it, the image may be another controller's: nothing may be decided about that."""
    tenure, steps = Tenure(session), 0

    def decide() -> Steps[str]:
        nonlocal steps
        for _ in range(3):
            steps += 1
            yield
        return Plan("reply", (Create("/a"),))

    deciding = asyncio.create_task(tenure.plans.carry_out(decide))
    while steps < 2:
        await asyncio.sleep(0)
    tenure.plans.abandon()
    with pytest.raises(ApiError) as refused:
        await deciding
    assert refused.value.code is ErrorCode.not_controller
    assert steps == 2
    assert await session.exists("/a") is None
