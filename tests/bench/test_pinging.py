import socket
import struct
import threading
import time

import pytest
from bench.measure import ClientError
from bench.pinging import REQUEST, Pings

HELD_S = 0.3


def answer(server: socket.socket, held: threading.Event) -> None:
    """Answers pings until the connection ends; while `held` is set the first one waits."""
    connection, _ = server.accept()
    with connection:
        while len(connection.recv(len(REQUEST), socket.MSG_WAITALL)) == len(REQUEST):
            if held.is_set():
                time.sleep(HELD_S)
                held.clear()
            connection.sendall(struct.pack(">iih", 6, 1, 0))


def test_the_worst_ping_is_that_which_was_held() -> None:
    held = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=(server, held), daemon=True).start()
        with Pings(f"127.0.0.1:{server.getsockname()[1]}") as pings:
            pings.worst_ms()
            held.set()
            while held.is_set():
                time.sleep(0.001)
            assert pings.worst_ms() >= HELD_S * 1000


def test_a_broker_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(ClientError, match="the pings ended with 1"), Pings(address):
        pass
