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
from ottla.cli.journey_client import ask_journey, joined

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


def told(partition: int, stamped: int | None) -> dict:
    return {
        "journey": 1,
        "partition": partition,
        "published": {"timestamp_ms": stamped},
        "elsewhere": [9],
    }


def refused(code: str, **more: object) -> dict:
    return {"journey": 1, "error": {"code": code, "message": "m", **more}}


def test_of_several_leaders_answers_the_newest_message_is_told():
    answer = joined([told(0, 5), refused("key_not_found", searched=[]), told(2, 9), told(1, None)])
    assert answer["partition"] == 2
    assert "elsewhere" not in answer


def test_what_all_leaders_lack_is_said_of_all_partitions():
    answer = joined(
        [
            refused("not_leader"),
            refused("which_offset", partitions=[{"partition": 2}]),
            refused("which_offset", partitions=[{"partition": 0}, {"partition": 1}]),
        ]
    )
    assert answer["error"]["code"] == "which_offset"
    assert [one["partition"] for one in answer["error"]["partitions"]] == [0, 1, 2]


def test_the_leader_is_asked_where_another_broker_was(monkeypatch):
    answers = {"a:1": refused("not_leader", leader=2), "b:2": {"journey": 1, "topic": "t"}}
    monkeypatch.setattr(journey_client, "ask_broker", lambda address, question: answers[address])
    monkeypatch.setattr(journey_client, "leader_addresses", lambda bootstrap, question: ["b:2"])
    assert ask_journey("a:1", QUESTION) == {"journey": 1, "topic": "t"}


def test_without_any_leader_the_brokers_own_answer_stands(monkeypatch):
    answer = refused("not_leader", leader=None)
    monkeypatch.setattr(journey_client, "ask_broker", lambda address, question: answer)
    monkeypatch.setattr(journey_client, "leader_addresses", lambda bootstrap, question: [])
    assert ask_journey("a:1", QUESTION) == answer


def test_leadership_that_keeps_moving_ends_in_an_answer(monkeypatch):
    answer = refused("not_leader", leader=2)
    monkeypatch.setattr(journey_client, "ask_broker", lambda address, question: answer)
    monkeypatch.setattr(journey_client, "leader_addresses", lambda bootstrap, question: ["b:2"])
    monkeypatch.setattr(journey_client, "SETTLE_S", 0.0)
    monkeypatch.setattr(journey_client, "SETTLE_PAUSE_S", 0.0)
    assert ask_journey("a:1", QUESTION)["error"]["code"] == "not_leader"
