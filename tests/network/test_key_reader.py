from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.security.authority import Authority
from tests.security.issuer import KeyServer, serving

from ottla.network.key_reader import MAX_KEYS_BYTES, KeyFile, KeyRequest
from ottla.security.sasl.signed_token import KeysError


@pytest.fixture
def server() -> Iterator[KeyServer]:
    with serving(b"keys") as one:
        yield one


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a b.json"
    path.write_bytes(b"keys")
    url = f"file://{tmp_path}/a%20b.json"
    assert KeyFile(url).read() == b"keys"
    path.write_bytes(b"a" * (MAX_KEYS_BYTES + 1))
    with pytest.raises(KeysError, match="more than 1048576 bytes"):
        KeyFile(url).read()
    path.unlink()
    with pytest.raises(KeysError, match="No such file"):
        KeyFile(url).read()


def test_an_address(server: KeyServer) -> None:
    assert KeyRequest(server.url).read() == b"keys"
    assert KeyRequest(f"{server.url}?v=1").read() == b"keys"
    assert server.asked == 2


@pytest.mark.parametrize(
    ("status", "said"), [(404, "HTTP status 404"), (302, "redirects to http://elsewhere.example/")]
)
def test_another_status(server: KeyServer, status: int, said: str) -> None:
    server.status = status
    with pytest.raises(KeysError, match=said):
        KeyRequest(server.url).read()
    assert server.asked == 1


def test_too_much(server: KeyServer) -> None:
    server.text = b"a" * (MAX_KEYS_BYTES + 1)
    with pytest.raises(KeysError, match="more than 1048576 bytes"):
        KeyRequest(server.url).read()


def test_an_authority_that_is_not_trusted(server: KeyServer, tmp_path: Path) -> None:
    trust = Authority().trust(tmp_path / "trust.pem")
    url = server.url.replace("http:", "https:")
    with pytest.raises(KeysError):  # it speaks no TLS
        KeyRequest(url, str(trust)).read()
    with pytest.raises(KeysError, match=r"none\.pem: No such file"):
        KeyRequest(url, f"{tmp_path}/none.pem").read()


def test_nobody_is_there() -> None:
    with pytest.raises(KeysError, match="Connection refused"):
        KeyRequest("http://127.0.0.1:1/keys").read()


@pytest.fixture
def raw() -> Iterator[Callable[[bytes], str]]:
    """A server that sends these bytes, and the end if there are any."""
    listening = socket.create_server(("127.0.0.1", 0))
    accepted: list[socket.socket] = []

    def serve(sent: bytes) -> str:
        def run() -> None:
            one, _ = listening.accept()
            accepted.append(one)
            one.recv(10_000)
            if sent:
                one.sendall(sent)
                one.close()

        threading.Thread(target=run, daemon=True).start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}/"

    yield serve
    for each in (listening, *accepted):
        each.close()


@pytest.mark.parametrize(
    "sent", [b"\0", b"\x15\x03\x01\0\x02\x02\x50", b"HTTP/1.1 200 OK\r\n" * 200]
)
def test_what_is_no_http(raw: Callable[[bytes], str], sent: bytes) -> None:
    with pytest.raises(KeysError):
        KeyRequest(raw(sent)).read()


def test_one_that_is_silent_is_given_up(raw: Callable[[bytes], str]) -> None:
    request = KeyRequest(raw(b""))
    ended: list[str] = []

    def read() -> None:
        try:
            request.read()
        except KeysError as error:
            ended.append(str(error))

    thread = threading.Thread(target=read)
    thread.start()
    while thread.is_alive():
        request.give_up()
        thread.join(0.05)
    assert len(ended) == 1
