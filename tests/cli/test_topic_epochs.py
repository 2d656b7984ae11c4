"""Leader epochs over a plain connection, from listeners that answer and that do not."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla.cli.topic_epochs import METADATA, VERSION, Epoch, epochs_of
from ottla.protocol.frames import write_response
from ottla.protocol.messages import messages_of


def response() -> bytes:
    build = messages_of(METADATA, VERSION)
    partitions = tuple(
        build.MetadataResponsePartition(
            partition_index=index,
            leader_id=1,
            leader_epoch=4 + index,
            replica_nodes=(1, 2),
            isr_nodes=(1,),
            offline_replicas=(2,),
        )
        for index in range(2)
    )
    topic = build.MetadataResponseTopic(name="t", partitions=partitions)
    answer = build.MetadataResponse(brokers=(), topics=(topic,))
    return b"".join(map(bytes, write_response(answer, 1)))


@contextmanager
def listener(answer: bytes) -> Iterator[str]:
    """Takes one request, sends `answer`, closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(20)


def test_epochs_and_offline_replicas_are_read():
    with listener(response()) as address:
        assert epochs_of(address, ["t"]) == {("t", 0): Epoch(4, (2,)), ("t", 1): Epoch(5, (2,))}


@pytest.mark.parametrize("answer", [b"", b"\0\0", b"\xff" * 8, b"\0\0\0\6" + b"\xff" * 6])
def test_without_a_sound_answer_nothing_is_known(answer):
    with listener(answer) as address:
        assert epochs_of(address, ["t"]) == {}


def test_without_a_listener_nothing_is_known():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert epochs_of(address, ["t"]) == {}
