"""The page of the documentation, in a real browser."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from tests.system.chromium import chromium, tab
from tests.system.test_websocket import started

from ottla.testing import BrokerProcess
from ottla.testing.ports import HOST, free_ports

WAIT_S = 30
PAGE = Path(__file__).parents[2] / "docs" / "websocket.md"
PROGRAM = chromium() or ""
pytestmark = pytest.mark.skipif(not PROGRAM, reason="no Chromium on the PATH")
ROWS = "document.getElementById('records').rows"
STATE = "document.getElementById('state').textContent"


@pytest.fixture
def website(tmp_path: Path) -> Iterator[str]:
    """The address of a website that has the page."""
    _, _, rest = PAGE.read_text().partition("```html\n")
    (tmp_path / "index.html").write_text(rest.partition("```")[0])

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *given: Any) -> None:
            """The test's own output stays readable."""

    server = ThreadingHTTPServer((HOST, 0), functools.partial(Handler, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://{HOST}:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def broker_for(new_broker: Callable[..., BrokerProcess], origin: str) -> tuple[int, int]:
    """The ports for other clients and for pages."""
    plain_port, port = free_ports(2)
    started(
        new_broker,
        listeners=f"PLAINTEXT://{HOST}:{plain_port},WS://{HOST}:{port}",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,WS:PLAINTEXT",
        ottla_websocket_listeners="WS",
        ottla_websocket_origins=origin,
    )
    return plain_port, port


def test_a_page_shows_a_topic_and_writes_to_it(
    new_broker: Callable[..., BrokerProcess], website: str, tmp_path: Path
) -> None:
    plain_port, port = broker_for(new_broker, website)
    settings = {"bootstrap.servers": f"{HOST}:{plain_port}"}
    producer = Producer(settings)
    producer.produce("live", b"before")
    assert producer.flush(WAIT_S) == 0
    with tab(PROGRAM, tmp_path, f"{website}/?address=ws://{HOST}:{port}") as page:
        page.until(STATE, "live: live")
        assert page.value(f"{ROWS}.length") == 0
        for number in range(200):
            producer.produce("live", f"<b>{number}</b>".encode(), b"k")
        assert producer.flush(WAIT_S) == 0
        page.until(f"{ROWS}[0]?.cells[1].textContent", "200")
        assert page.value(f"{ROWS}[0].cells[4].textContent") == "<b>199</b>"
        assert page.value(f"{ROWS}.length") == 50
        page.value("document.getElementById('key').value = 'from a page'")
        page.value("document.getElementById('value').value = 'Grüße'")
        page.value("document.getElementById('form').requestSubmit()")
        page.until(STATE, "written: 0-201")
        page.until(f"{ROWS}[0]?.cells[4].textContent", "Grüße")
    consumer = Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["live"])
    messages = consumer.consume(202, WAIT_S)
    assert (messages[-1].key(), messages[-1].value()) == (b"from a page", "Grüße".encode())
    consumer.close()


def test_a_page_of_another_website(
    new_broker: Callable[..., BrokerProcess], website: str, tmp_path: Path
) -> None:
    _, port = broker_for(new_broker, "https://example.org")
    with tab(PROGRAM, tmp_path, f"{website}/?address=ws://{HOST}:{port}") as page:
        page.until(STATE, "disconnected")
