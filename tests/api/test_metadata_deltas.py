import asyncio
import json
from typing import Any

import pytest

from ottla.api.table import find
from ottla.controller.delta_text import decode_snapshot
from ottla.controller.plan import decided
from ottla.controller.topics import NewTopic
from ottla.network.client_session import ClientSession
from ottla.network.request_context import RequestContext
from ottla.protocol.errors import ApiError, DecodeError, ErrorCode
from ottla.protocol.versions import METADATA_DELTAS


async def ask(cluster: Any, **changes: Any) -> Any:
    question = {
        "broker": 2,
        "broker_epoch": 5,
        "controller_epoch": cluster.image.controller_epoch,
        "version": -1,
        "wait_ms": 0,
    }
    question |= changes
    return await ask_raw(cluster, json.dumps(question).encode(), question["broker"])


async def ask_raw(cluster: Any, body: bytes, broker_id: int = 2) -> Any:
    handler = find(METADATA_DELTAS)
    assert handler is not None
    session = ClientSession(1, "", "", "", 0, broker_id=broker_id)
    context: Any = RequestContext(cluster.node, session, 0, "tests", None)  # type: ignore[arg-type]
    return json.loads(await handler.answer(body, context))


async def test_a_snapshot_first_then_deltas(cluster: Any) -> None:
    await cluster.create(NewTopic("t", 2, 1))
    first = await ask(cluster)
    assert first["controller"] == 1
    assert decided(decode_snapshot(first["snapshot"])).topics == cluster.image.topics
    assert (await ask(cluster, version=first["version"]))["deltas"] == []
    await cluster.create(NewTopic("u", 1, 1))
    second = await ask(cluster, version=first["version"])
    assert [each[0] for each in second["deltas"]] == ["created"]
    assert second["version"] == cluster.image.version


async def test_a_version_from_another_controller_epoch_gets_a_snapshot(cluster: Any) -> None:
    version = (await ask(cluster))["version"]
    assert "snapshot" in await ask(cluster, version=version, controller_epoch=7)


async def test_the_next_change_answers_a_waiting_request(cluster: Any) -> None:
    version = (await ask(cluster))["version"]
    waiting = asyncio.create_task(ask(cluster, version=version, wait_ms=60_000))
    while cluster.controller.metadata_log.waiters is None:
        await asyncio.sleep(0)
    await cluster.create(NewTopic("t", 1, 1))
    assert (await asyncio.wait_for(waiting, 10))["deltas"]


async def test_the_controller_resigns_during_a_wait(cluster: Any) -> None:
    version = (await ask(cluster))["version"]
    waiting = asyncio.create_task(ask(cluster, version=version, wait_ms=60_000))
    while cluster.controller.metadata_log.waiters is None:
        await asyncio.sleep(0)
    cluster.controller.resign("for the test")
    assert await asyncio.wait_for(waiting, 10) == {"error": "not_controller"}
    assert await ask(cluster) == {"error": "not_controller"}


async def test_a_broken_connection_is_reported(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    disconnected: list[int] = []
    monkeypatch.setattr(cluster.controller, "disconnected", disconnected.append)
    version = (await ask(cluster))["version"]
    waiting = asyncio.create_task(ask(cluster, version=version, wait_ms=60_000))
    while cluster.controller.metadata_log.waiters is None:
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert disconnected == [2]


async def test_a_broker_may_shut_down_once_it_leads_nothing(cluster: Any) -> None:
    me = {"broker": 1, "broker_epoch": cluster.image.brokers[1].epoch}
    # There is nothing to take over; a shutdown does not wait for deltas either.
    await cluster.create(NewTopic("t", 1, 1))
    version = (await ask(cluster, **me))["version"]
    assert "should_shut_down" not in await ask(cluster, **me, version=version)
    leaving = me | {"want_shut_down": True, "version": cluster.image.version, "wait_ms": 60_000}
    answer = await asyncio.wait_for(ask(cluster, **leaving), 10)
    assert answer["should_shut_down"] is True
    cluster.controller.resign("for the test")
    assert await ask(cluster, **leaving) == {"error": "not_controller"}


@pytest.mark.parametrize(("broker", "is_newer"), [(1, False), (1, True), (2, False)])
async def test_a_broker_with_another_epoch_may_not_shut_down_yet(
    cluster: Any, broker: int, is_newer: bool
) -> None:
    """The controller does not know that registration (any more, or yet): it has moved nothing."""
    await cluster.create(NewTopic("t", 1, 1))
    epoch = cluster.image.brokers[1].epoch + (1 if is_newer else -1)
    leaving = {"broker": broker, "broker_epoch": epoch, "want_shut_down": True}
    answer = await ask(cluster, **leaving)
    assert answer["should_shut_down"] is False


async def test_a_controller_that_cannot_hand_over_is_none(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(broker_id: int, epoch: int) -> bool:
        raise ApiError(ErrorCode.not_controller)

    monkeypatch.setattr(cluster.controller, "shut_down", fails)
    leaving = {"broker": 1, "broker_epoch": 1, "want_shut_down": True}
    assert await ask(cluster, **leaving) == {"error": "not_controller"}


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"broker": true}', b'{"broker": "1"}'])
async def test_an_invalid_body_is_refused(cluster: Any, body: bytes) -> None:
    with pytest.raises(DecodeError):
        await ask_raw(cluster, body)
