"""The one request of Ottla's own, against listeners that answer, lie, close or say nothing."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ottla.cli import journey_client
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.journey_client import ask_journey

QUESTION = {"journey": 1, "topic": "t"}


@contextmanager
def listener(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """Takes one request, sends what `answer` makes of it, closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
                frame = connection.recv(size, socket.MSG_WAITALL)
                connection.sendall(answer(frame))

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(20)


def framed(body: bytes) -> bytes:
    return struct.pack(">ii", 4 + len(body), 1) + body


def test_the_request_is_kafkas_framing_around_json():
    seen: list[bytes] = []

    def answer(frame: bytes) -> bytes:
        seen.append(frame)
        return framed(b'{"journey": 1, "topic": "t"}')

    with listener(answer) as address:
        assert ask_journey(address, QUESTION) == {"journey": 1, "topic": "t"}
    key, version, correlation_id, client_size = struct.unpack_from(">hhih", seen[0])
    assert (key, version, correlation_id) == (20_000, 0, 1)
    assert json.loads(seen[0][10 + client_size :]) == QUESTION


@pytest.mark.parametrize(
    "answer",
    [b"", b"\0\0", framed(b"no json"), framed(b"[1]"), framed(b"{}"), struct.pack(">i", 2**31 - 1)],
)
def test_what_does_not_speak_so_is_no_ottla_broker(answer):
    with (
        listener(lambda frame: answer) as address,
        pytest.raises(Failed, match="is not an Ottla broker"),
    ):
        ask_journey(address, QUESTION)


def test_silence_is_told(monkeypatch):
    monkeypatch.setattr(journey_client, "ANSWER_TIMEOUT_S", 0.05)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(Failed, match="does not answer"),
    ):
        ask_journey(f"127.0.0.1:{server.getsockname()[1]}", QUESTION)


def test_nobody_there_is_told():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Failed, match="no broker can be reached"):
        ask_journey(f"127.0.0.1:{port}", QUESTION)
    with pytest.raises(UsageFailed, match="wants HOST:PORT"):
        ask_journey("nonsense:port", QUESTION)


def test_the_second_address_is_tried():
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    with listener(lambda frame: framed(b'{"journey": 1}')) as address:
        assert ask_journey(f"127.0.0.1:{closed},{address}", QUESTION) == {"journey": 1}
