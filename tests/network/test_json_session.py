"""What is kept of a page. With a broker: `tests/system/test_websocket_json.py`."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.network.frame_protocol import FrameProtocol
from ottla.network.json_session import (
    MAX_KEY_BYTES,
    MAX_WAITING,
    MAX_WAITING_BYTES,
    JsonSession,
)
from ottla.network.json_text import MAX_ID_CHARACTERS, MAX_PARTS
from ottla.runtime.cpu_thread import CpuThread


class Page:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.transport = cast("asyncio.Transport", None)
        self.is_paused = False
        self.sent: list[dict[str, Any]] = []
        self.has_sent = asyncio.Event()

    def pause_reading(self, is_paused: bool) -> None:
        self.is_paused = is_paused

    def send_text(self, data: bytes) -> None:
        self.sent.append(json.loads(data))
        self.has_sent.set()

    def close(self) -> None: ...


def new_session(page: Page) -> JsonSession:
    return JsonSession(
        page, broker_id=1, needs_login=False, now_ms=lambda: 0, cpu_thread=CpuThread()
    )


def connect(session: JsonSession) -> None:
    inside = SimpleNamespace(
        connection_made=lambda transport: None, connection_lost=lambda error: None
    )
    session.connect(cast("FrameProtocol", inside))


def command(**more: Any) -> bytes:
    return json.dumps({"type": "nonsense"} | more).encode()


@pytest.mark.parametrize(
    ("text", "most"),
    [(command(), MAX_WAITING), (command(value="a" * (MAX_WAITING_BYTES // 4)), 4)],
)
async def test_commands_wait_until_they_are_too_many(text: bytes, most: int) -> None:
    page = Page()
    session = new_session(page)
    for _ in range(2):
        for number in range(most):
            assert not page.is_paused, number
            session.received_text(text)
        assert page.is_paused
        connect(session)
        async with asyncio.timeout(60):
            while page.is_paused:
                await asyncio.sleep(0)
        assert len(page.sent) == most
        page.sent.clear()
        session.connection_lost(None)
        session = new_session(page)


async def test_what_has_waited_does_not_count_any_more() -> None:
    page = Page()
    session = new_session(page)
    connect(session)
    for _ in range(8):
        session.received_text(command(value="a" * (MAX_WAITING_BYTES // 4)))
        assert not page.is_paused
        async with asyncio.timeout(60):
            await page.has_sent.wait()
        page.has_sent.clear()
    session.connection_lost(None)


@pytest.mark.parametrize("number", ["a" * (MAX_ID_CHARACTERS + 1), 2**63, 1.5, None])
async def test_an_id_is_short(number: Any) -> None:
    page = Page()
    new_session(page).received_text(command(id=number))
    assert page.sent == [
        {
            "type": "error",
            "error": "INVALID_REQUEST",
            "message": "not an object of JSON with a type and an id",
        }
    ]


async def test_no_long_key_is_kept() -> None:
    page = Page()
    session = new_session(page)
    connect(session)
    session.received_text(command(type="subscribe", topic="t", key="k" * (MAX_KEY_BYTES + 1)))
    async with asyncio.timeout(60):
        await page.has_sent.wait()
    assert page.sent[0]["message"] == f"key must not have more than {MAX_KEY_BYTES} bytes"
    session.connection_lost(None)


@pytest.mark.parametrize("partition", [1.0, True, -1, 2**63, "1", [], {}])
async def test_a_partition_is_a_number(partition: Any) -> None:
    """Python takes 1.0 and True for 1, and the request's field does not."""
    page = Page()
    session = new_session(page)
    connect(session)
    session.received_text(command(type="produce", topic="t", value="v", partition=partition))
    async with asyncio.timeout(60):
        await page.has_sent.wait()
    assert page.sent[0]["message"] == "partition must be a number, or left out"
    session.connection_lost(None)


async def test_messages_of_many_elements_are_read_in_a_thread_and_in_turn() -> None:
    page = Page()
    session = new_session(page)
    connect(session)
    many: list[list[int]] = [[]] * MAX_PARTS
    session.received_text(command(id="long", value=many))
    session.received_text(command(id="short"))
    session.received_text(b"[" * 2 * MAX_PARTS)
    session.received_text(command(type="permit", id="nobody", value=many))
    session.received_text(command(id="last"))
    async with asyncio.timeout(60):
        while not page.sent or page.sent[-1].get("id") != "last":
            await asyncio.sleep(0.001)
    assert [each.get("id") for each in page.sent if each.get("id") != "nobody"] == [
        "long",
        "short",
        None,
        "last",
    ]
    session.connection_lost(None)
