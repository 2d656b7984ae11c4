"""Cuts: what a broker sees of the network during a cut and after heal."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from ottla.testing.network import Network
from ottla.testing.ports import HOST, free_ports

ANSWER_WITHIN_S = 30
SILENT_FOR_S = 0.2


class Echo:
    """A server that sends back the bytes of each connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.listener = socket.create_server((HOST, port))
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    @staticmethod
    def _answer(connection: socket.socket) -> None:
        try:
            while data := connection.recv(4096):
                connection.sendall(data)
        except OSError:
            pass
        finally:
            connection.close()

    def close(self) -> None:
        # Otherwise the thread in accept() would keep the port open.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


def hello(broker_id: int) -> bytes:
    """A frame that begins like a broker's request."""
    client_id = f"broker-{broker_id}-fetcher-0".encode()
    header = struct.pack(">hhih", 1, 17, 0, len(client_id)) + client_id
    return struct.pack(">i", len(header)) + header


def connect(port: int) -> socket.socket:
    """Connect with retries: the proxy needs a moment until it listens."""
    for _ in range(3_000):
        try:
            return socket.create_connection((HOST, port), ANSWER_WITHIN_S)
        except ConnectionRefusedError:
            threading.Event().wait(0.01)
    raise AssertionError("the proxy does not listen")


def exchange(connection: socket.socket, data: bytes) -> bytes:
    connection.settimeout(ANSWER_WITHIN_S)
    connection.sendall(data)
    answer = b""
    while len(answer) < len(data):
        piece = connection.recv(4096)
        if not piece:
            break
        answer += piece
    return answer


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(SILENT_FOR_S)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    return False


def is_ended(connection: socket.socket) -> bool:
    connection.settimeout(ANSWER_WITHIN_S)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.close()


@pytest.fixture
def brokers(network: Network) -> Iterator[dict[int, int]]:
    """The ports of the proxies for brokers 1, 2 and 3."""
    echoes = {number: Echo(port) for number, port in enumerate(free_ports(3), 1)}
    yield {number: network.add_broker(number, echo.port) for number, echo in echoes.items()}
    for echo in echoes.values():
        echo.close()


def test_proxies_forward_bytes_unchanged(brokers: dict[int, int]) -> None:
    with connect(brokers[1]) as connection:
        assert exchange(connection, hello(2)) == hello(2)
        assert exchange(connection, b"x" * 300_000) == b"x" * 300_000


def test_a_cut_link_is_silent_in_both_directions_and_heal_ends_it(
    network: Network, brokers: dict[int, int]
) -> None:
    with connect(brokers[1]) as to_one, connect(brokers[2]) as to_two:
        exchange(to_one, hello(2))
        exchange(to_two, hello(1))
        network.cut(1, 2)
        to_one.sendall(b"anyone?")
        to_two.sendall(b"anyone?")
        assert is_silent(to_one)
        assert is_silent(to_two)
        network.heal()
        assert is_ended(to_one)
        assert is_ended(to_two)
    with connect(brokers[1]) as again:
        assert exchange(again, hello(2)) == hello(2)


def test_a_new_connection_during_a_cut_is_accepted_but_silent(
    network: Network, brokers: dict[int, int]
) -> None:
    network.cut(1, 2)
    with connect(brokers[1]) as connection:
        connection.sendall(hello(2))
        assert is_silent(connection)
        network.heal()
        assert is_ended(connection)


def test_a_cut_does_not_affect_other_brokers(network: Network, brokers: dict[int, int]) -> None:
    with connect(brokers[1]) as from_three:
        exchange(from_three, hello(3))
        network.cut(1, 2)
        assert exchange(from_three, b"still here") == b"still here"
    with connect(brokers[1]) as client:
        stranger = struct.pack(">ihhih", 12, 18, 0, 0, 2) + b"me"
        assert exchange(client, stranger) == stranger


def test_a_cut_with_reset_ends_links_old_and_new(network: Network, brokers: dict[int, int]) -> None:
    with connect(brokers[1]) as old:
        exchange(old, hello(2))
        network.cut(1, 2, reset=True)
        assert is_ended(old)
    with connect(brokers[1]) as new:
        new.sendall(hello(2))
        assert is_ended(new)


def test_connections_to_a_killed_broker_are_refused_until_it_is_up(network: Network) -> None:
    (target,) = free_ports(1)
    echo = Echo(target)
    port = network.add_broker(1, target)
    connect(port).close()
    network.broker_is_down(1)
    echo.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port), ANSWER_WITHIN_S)
    network.broker_comes_up(1)
    echo = Echo(target)
    with connect(port) as connection:
        assert exchange(connection, hello(2)) == hello(2)
    echo.close()


def test_a_zookeeper_cut_affects_one_broker_only(network: Network) -> None:
    member = Echo(free_ports(1)[0])
    ways = {
        number: network.add_way_to_zookeeper(number, [(HOST, member.port)]) for number in (1, 2)
    }
    links = {number: connect(int(way.rpartition(":")[2])) for number, way in ways.items()}
    for link in links.values():
        exchange(link, b"session")
    network.cut_zookeeper(1)
    links[1].sendall(b"ping")
    assert is_silent(links[1])
    assert exchange(links[2], b"ping") == b"ping"
    network.heal()
    assert is_ended(links[1])
    network.drop_zookeeper(2)
    assert is_ended(links[2])
    for link in links.values():
        link.close()
    member.close()


def test_a_slow_way_to_zookeeper_delays_each_answer(network: Network) -> None:
    member = Echo(free_ports(1)[0])
    way = network.add_way_to_zookeeper(1, [(HOST, member.port)])
    with connect(int(way.rpartition(":")[2])) as link:
        assert exchange(link, b"session") == b"session"
        network.slow_zookeeper(1, SILENT_FOR_S)
        began = time.monotonic()
        assert exchange(link, b"ping") == b"ping"
        assert time.monotonic() - began >= SILENT_FOR_S
        network.slow_zookeeper(1, 0)
        assert exchange(link, b"ping") == b"ping"
    member.close()
