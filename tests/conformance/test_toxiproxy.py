"""What a client sees of the proxies, and what Toxiproxy's interface answers."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from conformance.toxiproxy import Toxiproxy

from ottla.testing.ports import HOST, free_ports

ANSWER_WITHIN_S = 30


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that sends back what it gets."""
    with socket.create_server((HOST, 0)) as listener:

        def answer(connection: socket.socket) -> None:
            with connection:
                try:
                    while data := connection.recv(4096):
                        connection.sendall(data)
                except ConnectionError:
                    pass

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture
def url(echo: int, port: int) -> Iterator[str]:
    with Toxiproxy({"kafka1": (port, echo)}) as proxies:
        yield proxies.url


def post(url: str, content: object = None) -> int:
    body = None if content is None else json.dumps(content).encode()
    with urlopen(Request(url, body, method="POST"), timeout=ANSWER_WITHIN_S) as answer:
        return int(answer.status)


def connected(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), timeout=ANSWER_WITHIN_S)


def echoed(connection: socket.socket) -> bytes:
    """What comes back; empty when the connection ended in order."""
    connection.sendall(b"hello")
    return connection.recv(16)


def test_a_proxy_is_told_and_open_at_first(url: str, port: int, echo: int) -> None:
    with urlopen(f"{url}/proxies/kafka1", timeout=ANSWER_WITHIN_S) as answer:
        told = json.load(answer)
    assert told == {
        "name": "kafka1",
        "listen": f"{HOST}:{port}",
        "upstream": f"{HOST}:{echo}",
        "enabled": True,
    }
    with connected(port) as client:
        assert echoed(client) == b"hello"


def test_a_closed_proxy_ends_its_connections_and_refuses_new_ones(url: str, port: int) -> None:
    with connected(port) as client:
        assert echoed(client) == b"hello"
        assert post(f"{url}/proxies/kafka1", {"name": "kafka1", "enabled": False}) == 200
        with pytest.raises(ConnectionResetError):
            client.recv(16)
    with pytest.raises(ConnectionRefusedError):
        connected(port)
    assert post(f"{url}/proxies/kafka1", {"name": "kafka1", "enabled": True}) == 200
    with connected(port) as client:
        assert echoed(client) == b"hello"
    post(f"{url}/proxies/kafka1", {"enabled": False})
    assert post(f"{url}/reset") == 204
    with connected(port) as client:
        assert echoed(client) == b"hello"


def test_latency_delays_answers_until_the_reset(url: str, port: int) -> None:
    latency = {"type": "latency", "toxicity": 1, "attributes": {"latency": 50}}
    with connected(port) as client:
        assert post(f"{url}/proxies/kafka1/toxics", latency) == 200
        began = time.monotonic()
        assert echoed(client) == b"hello"
        assert time.monotonic() - began >= 0.05
        assert post(f"{url}/reset") == 204
        assert echoed(client) == b"hello"


def test_reset_peer_resets_old_and_new_connections(url: str, port: int) -> None:
    toxic = {"type": "reset_peer", "stream": "downstream", "toxicity": 1, "attributes": {}}
    with connected(port) as client:
        assert echoed(client) == b"hello"
        assert post(f"{url}/proxies/kafka1/toxics", toxic) == 200
        with pytest.raises(ConnectionError):
            client.recv(16)
    with pytest.raises(ConnectionError), connected(port) as client:
        echoed(client)
    assert post(f"{url}/reset") == 204
    with connected(port) as client:
        assert echoed(client) == b"hello"


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("proxies/kafka9", {"enabled": False}, 404),
        ("proxies/kafka9/toxics", {"type": "latency"}, 404),
        ("proxies", {"name": "kafka9"}, 501),
        ("proxies/kafka1/toxics", {"type": "bandwidth", "attributes": {"rate": 1}}, 400),
        ("proxies/kafka1/toxics", {"type": "latency", "attributes": {"jitter": 5}}, 400),
        ("proxies/kafka1/toxics", {"type": "reset_peer", "attributes": {"timeout": 5}}, 400),
        ("proxies/kafka1/toxics", {"type": "reset_peer", "stream": "upstream"}, 400),
        ("proxies/kafka1/toxics", {"type": "reset_peer", "toxicity": 0.5}, 400),
    ],
)
def test_what_is_not_done_is_refused(url: str, path: str, content: object, status: int) -> None:
    with pytest.raises(HTTPError) as refused:
        post(f"{url}/{path}", content)
    assert refused.value.code == status
    refused.value.close()
