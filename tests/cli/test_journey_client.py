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
def test_a_server_without_this_request_is_not_an_ottla_broker(answer):
    with (
        listener(lambda frame: answer) as address,
        pytest.raises(Failed, match="is not an Ottla broker"),
    ):
        ask_journey(address, QUESTION)


def test_a_missing_response_fails(monkeypatch):
    monkeypatch.setattr(journey_client, "ANSWER_TIMEOUT_S", 0.05)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(Failed, match="no response from"),
    ):
        ask_journey(f"127.0.0.1:{server.getsockname()[1]}", QUESTION)


def test_an_unreachable_broker_fails():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Failed, match="cannot reach a broker"):
        ask_journey(f"127.0.0.1:{port}", QUESTION)
    with pytest.raises(UsageFailed, match="must be HOST:PORT"):
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


def test_the_newest_message_of_several_leaders_is_shown():
    answer = joined([told(0, 5), refused("key_not_found", searched=[]), told(2, 9), told(1, None)])
    assert answer["partition"] == 2
    assert "elsewhere" not in answer


def told_of_key(place: tuple[int, int, int], also: list[dict], not_searched: list[int]) -> dict:
    partition, offset, stamped = place
    row = {"did": "inserted", "of": None, "then": "current", "by": None}
    return told(partition, stamped) | {
        "offset": offset,
        "partition_chosen": {"why": f"why {partition}"},
        "key_elsewhere": {"messages": also, "not_searched": not_searched},
        "delivered": [{"row": row | {"also_in": [], "unless_in": not_searched}}, {"row": None}],
    }


def test_what_the_leaders_together_know_of_a_key():
    third = {"partition": 3, "offset": 1, "timestamp_ms": 1, "why": "why 3"}
    nothing = refused("key_not_found", searched=[{"partition": 4, "whole": True}])
    answers = [
        told_of_key((0, 8, 20), [third], [1, 2, 4, 5]),
        told_of_key((2, 6, 10), [], [0, 1, 3, 4, 5]),
        nothing | {"elsewhere": [0, 1, 2, 3, 5]},
        refused("not_leader"),
    ]
    answer = joined(answers)
    second = {"partition": 2, "offset": 6, "timestamp_ms": 10, "why": "why 2"}
    assert answer["partition"] == 0
    assert answer["key_elsewhere"] == {"messages": [second, third], "not_searched": [1, 5]}
    row, none = (one["row"] for one in answer["delivered"])
    assert none is None
    assert (row["did"], row["then"], row["also_in"], row["unless_in"]) == (None, None, [2, 3], [])


def test_a_key_that_no_other_leader_has():
    nothing = refused("key_not_found", searched=[{"partition": 1, "whole": True}])
    answer = joined([told_of_key((0, 8, 20), [], [1]), nothing | {"elsewhere": [0]}])
    assert answer["key_elsewhere"] == {"messages": [], "not_searched": []}
    row = answer["delivered"][0]["row"]
    assert (row["did"], row["then"], row["also_in"], row["unless_in"]) == (
        "inserted",
        "current",
        [],
        [],
    )


def listed(*messages: tuple[int, int], searched: tuple[int, ...], elsewhere: list[int]) -> dict:
    return {
        "journey": 1,
        "topic": "t",
        "messages": [{"partition": index, "offset": offset} for index, offset in messages],
        "searched": [{"partition": index} for index in searched],
        "elsewhere": elsewhere,
    }


def test_the_lists_of_several_leaders_are_one():
    answer = joined(
        [
            listed((2, 0), searched=(2,), elsewhere=[0, 1, 3]),
            refused("key_not_found", searched=[{"partition": 1}]),
            listed((0, 8), (0, 9), searched=(0,), elsewhere=[1, 2, 3]),
            refused("not_leader"),
        ]
    )
    places = [(one["partition"], one["offset"]) for one in answer["messages"]]
    assert places == [(0, 8), (0, 9), (2, 0)]
    assert [one["partition"] for one in answer["searched"]] == [0, 1, 2]
    assert answer["unanswered"] == [3]
    assert "elsewhere" not in answer


def test_a_message_that_no_leader_has_is_reported_for_all_partitions():
    answer = joined(
        [
            refused("not_leader"),
            refused("which_offset", partitions=[{"partition": 2}]),
            refused("which_offset", partitions=[{"partition": 0}, {"partition": 1}]),
        ]
    )
    assert answer["error"]["code"] == "which_offset"
    assert [one["partition"] for one in answer["error"]["partitions"]] == [0, 1, 2]


def test_the_request_goes_to_the_leader(monkeypatch):
    answers = {"a:1": refused("not_leader", leader=2), "b:2": {"journey": 1, "topic": "t"}}
    monkeypatch.setattr(journey_client, "ask_broker", lambda address, question: answers[address])
    monkeypatch.setattr(journey_client, "leader_addresses", lambda bootstrap, question: ["b:2"])
    assert ask_journey("a:1", QUESTION) == {"journey": 1, "topic": "t"}


def test_without_a_leader_the_brokers_own_response_is_used(monkeypatch):
    answer = refused("not_leader", leader=None)
    monkeypatch.setattr(journey_client, "ask_broker", lambda address, question: answer)
    monkeypatch.setattr(journey_client, "leader_addresses", lambda bootstrap, question: [])
    assert ask_journey("a:1", QUESTION) == answer


def test_leadership_that_keeps_moving_ends_with_a_response(monkeypatch):
    answer = refused("not_leader", leader=2)
    monkeypatch.setattr(journey_client, "ask_broker", lambda address, question: answer)
    monkeypatch.setattr(journey_client, "leader_addresses", lambda bootstrap, question: ["b:2"])
    monkeypatch.setattr(journey_client, "SETTLE_S", 0.0)
    monkeypatch.setattr(journey_client, "SETTLE_PAUSE_S", 0.0)
    assert ask_journey("a:1", QUESTION)["error"]["code"] == "not_leader"
