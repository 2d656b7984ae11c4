"""How a console stops: at once, and silently, whatever its visitors wait for."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.types import Receive, Scope, Send
from tests.console.served_console import HOST, WAIT_S, Got, Visitor, console_of
from tests.console.test_record_streams import events

from ottla.client.client import Client
from ottla.console import server as server_module
from ottla.console.access import Access
from ottla.console.console import Console
from ottla.console.server import Listen, bound, server_of
from ottla.testing import Topic

KIND = [(b"content-type", b"text/event-stream")]


class StuckAccess(Access):
    """Of a cluster that does not respond until `free` is set."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1:1", {}, "tests")
        self.asked, self.free = threading.Event(), threading.Event()

    @contextmanager
    def client(self) -> Iterator[Client]:
        self.asked.set()
        assert self.free.wait(WAIT_S)
        with super().client() as client:
            yield client


class Served:
    """A console in a thread, to be stopped while it is visited."""

    def __init__(self, console: Console) -> None:
        place = Listen(HOST, 0)
        self._listening = bound(place)
        self.server = server_of(console, place)
        self.visitor = Visitor(self._listening.getsockname()[1])
        self._thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self._listening]}, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self.server.handle_exit(signal.SIGINT, None)
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        self._listening.close()


def test_a_tail_ends_with_the_console(
    ottla_topic: Topic, capsys: pytest.CaptureFixture[str]
) -> None:
    console = console_of(ottla_topic.bootstrap)
    served = Served(console)
    with events(served.visitor, f"/topics/{ottla_topic.name}/tail") as found:
        assert next(found)[0] == "state"
        served.stop()
        # A browser connects again to what ends silently, and stops at what has failed.
        assert {name for name, _ in found} <= {"state"}
    console.close()
    assert capsys.readouterr() == ("", "")


def test_a_page_that_waits_for_the_cluster_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    access, got = StuckAccess(), list[Got]()
    console = Console(access)
    served = Served(console)
    asks = threading.Thread(target=lambda: got.append(served.visitor.ask("GET", "/topics")))
    asks.start()
    assert access.asked.wait(WAIT_S)
    served.stop()
    asks.join(WAIT_S)
    access.free.set()
    console.close()
    (page,) = got
    assert page.status == 503
    assert "The console stops. Load the page again once it runs again." in page.words
    assert capsys.readouterr() == ("", "")


def test_who_does_not_read_his_answer_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = threading.Event()

    async def endless(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": KIND})
        while not left():
            begun.set()
            await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})

    def left() -> bool:
        return begun.is_set() and not served.server.server_state.connections

    monkeypatch.setattr(server_module, "application", lambda *_: endless)
    monkeypatch.setattr(server_module, "STOP_WITHIN_S", 0.1)
    console = Console(StuckAccess())
    served = Served(console)
    with events(served.visitor, "/") as found:
        assert begun.wait(WAIT_S)
        served.stop()
        del found
    console.close()
    assert capsys.readouterr() == ("", "")


def test_a_second_signal_forces_nothing() -> None:
    console = Console(StuckAccess())
    server = server_of(console, Listen(HOST, 0))
    for _ in range(2):
        server.handle_exit(signal.SIGINT, None)
    assert server.should_exit
    assert not server.force_exit
    console.close()
