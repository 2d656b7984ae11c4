"""Topics over a plain connection, from listeners that answer and that do not."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from ottla.cli import topic_metadata
from ottla.cli.failures import Failed
from ottla.cli.topic_metadata import (
    METADATA,
    VERSION,
    Epoch,
    Partition,
    ReplicaBroker,
    Topic,
    controller_is_away,
    epochs_in,
    metadata_of,
    topics_in,
)
from ottla.protocol.errors import ErrorCode
from ottla.protocol.frames import write_response
from ottla.protocol.messages import messages_of


def metadata(controller=1, leader=1, code=ErrorCode.none):
    build = messages_of(METADATA, VERSION)
    partitions = tuple(
        build.MetadataResponsePartition(
            partition_index=index,
            leader_id=leader,
            leader_epoch=4 + index,
            replica_nodes=(1, 2),
            isr_nodes=(1,),
            offline_replicas=(2,),
        )
        for index in (1, 0)
    )
    topic = build.MetadataResponseTopic(
        name="t", topic_id=UUID(bytes=b"\xfb" * 16), error_code=code, partitions=partitions
    )
    broker = build.MetadataResponseBroker(node_id=1, host="h", port=9, rack="east")
    return build.MetadataResponse(brokers=(broker,), controller_id=controller, topics=(topic,))


def response() -> bytes:
    return b"".join(map(bytes, write_response(metadata(), 1)))


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
        told = metadata_of(address, ["t"])
    assert epochs_in(told) == {("t", 0): Epoch(4, (2,)), ("t", 1): Epoch(5, (2,))}


@pytest.mark.parametrize("answer", [b"", b"\0\0", b"\xff" * 8, b"\0\0\0\6" + b"\xff" * 6])
def test_an_invalid_response_gives_nothing(answer):
    with listener(answer) as address:
        assert metadata_of(address, ["t"]) is None


def test_without_a_listener_there_is_no_metadata():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert metadata_of(address, ["t"]) is None
    assert epochs_in(None) == {}


def test_topics_are_described_as_librdkafka_describes_them():
    east, unknown = ReplicaBroker(1, "east"), ReplicaBroker(2, None)
    (topic,) = topics_in(metadata())
    assert topic == Topic(
        "t",
        "+/v7+/v7+/v7+/v7+/v7+w",
        False,
        [Partition(index, east, [east, unknown], [east]) for index in (0, 1)],
    )
    (leaderless,) = topics_in(metadata(leader=-1))
    assert [each.leader for each in leaderless.partitions] == [None, None]


def test_an_unknown_topic_is_reported():
    with pytest.raises(Failed, match=r"cannot describe topic 't': unknown topic or partition\."):
        topics_in(metadata(code=ErrorCode.unknown_topic_or_partition))


@pytest.mark.parametrize(
    ("controller", "answers", "away"),
    [(1, True, False), (1, False, True), (2, True, True), (-1, True, True)],
)
def test_the_controller_is_tried(controller, answers, away, monkeypatch):
    monkeypatch.setattr(topic_metadata, "broker_answers", lambda host, port: answers)
    assert controller_is_away(metadata(controller=controller)) is away
