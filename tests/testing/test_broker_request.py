"""One request on one connection, and brokers that do not respond."""

from __future__ import annotations

import socket
import threading

import pytest

from ottla.protocol.frames import read_request_body, read_request_header, write_response
from ottla.protocol.messages import messages_of
from ottla.testing.broker_request import NoResponseError, ask_broker
from ottla.testing.ports import HOST, free_ports

METADATA = 3


def request() -> object:
    return messages_of(METADATA, 9, "request").MetadataRequest(topics=())


def test_the_response_may_arrive_in_pieces() -> None:
    build = messages_of(METADATA, 9)
    topic = build.MetadataResponseTopic(name="flights", partitions=())
    response = build.MetadataResponse(brokers=(), controller_id=7, topics=(topic,))
    asked = []
    with socket.create_server((HOST, 0)) as server:

        def respond() -> None:
            connection, _ = server.accept()
            with connection:
                frame = memoryview(connection.recv(1 << 16))[4:]
                header = read_request_header(frame)
                asked.append((header.key, header.version, read_request_body(header, frame).topics))
                for part in write_response(response, header.correlation_id):
                    for byte in bytes(part):
                        connection.sendall(bytes([byte]))

        thread = threading.Thread(target=respond)
        thread.start()
        found = ask_broker(f"{HOST}:{server.getsockname()[1]}", request())
        thread.join()
    assert asked == [(METADATA, 9, ())]
    assert (found.controller_id, found.topics[0].name) == (7, "flights")


def test_a_connection_that_ends_is_no_response() -> None:
    with socket.create_server((HOST, 0)) as server:

        def hang_up() -> None:
            connection, _ = server.accept()
            connection.recv(1 << 16)
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(NoResponseError, match="the connection ended"):
            ask_broker(f"{HOST}:{server.getsockname()[1]}", request())
        thread.join()


def test_silence_is_no_response() -> None:
    with (
        socket.create_server((HOST, 0)) as server,
        pytest.raises(NoResponseError, match="timed out"),
    ):
        ask_broker(f"{HOST}:{server.getsockname()[1]}", request(), 0.05)


def test_nobody_listens() -> None:
    address = f"{HOST}:{free_ports(1)[0]}"
    with pytest.raises(NoResponseError, match=f"no response from {address}"):
        ask_broker(address, request())
