from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla.testing import zookeeper_session
from ottla.testing.errors import KitError
from ottla.testing.zookeeper_server import ZooKeeperError, ZooKeeperServer, zookeeper_command
from ottla.testing.zookeeper_session import end_session, session_password


def test_the_password_is_the_servers(tmp_path: Path) -> None:
    try:
        zookeeper_command()
    except ZooKeeperError as error:
        pytest.skip(str(error))
    server = ZooKeeperServer(tmp_path)
    server.start()
    client = KazooClient(server.address)
    client.start()
    number, password = client.client_id
    assert session_password(number) == password
    client.stop()
    with pytest.raises(KitError, match=f"session {number:#x} is over already"):
        server.expire(number)
    server.stop()
    with pytest.raises(KitError, match="refused"):
        server.expire(number)


@contextmanager
def ensemble(*granted: int) -> Iterator[str]:
    """Grants each connection one of these session timeouts (ms); closes it at the next request."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for granted_ms in granted:
                connection, _ = server.accept()
                with connection:
                    length = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
                    connection.recv(length, socket.MSG_WAITALL)
                    connection.sendall(struct.pack(">iiiq", 16, 0, granted_ms, 7))
                    if granted_ms:
                        connection.recv(12, socket.MSG_WAITALL)

        thread = threading.Thread(target=serve)
        thread.start()
        yield "127.0.0.1:{1}".format(*server.getsockname())
        thread.join(20)
        assert not thread.is_alive()


def test_the_server_may_close_before_its_response() -> None:
    with ensemble(5000, 0) as address:
        end_session(address, 7)


def test_the_owner_may_take_the_session_back_meanwhile() -> None:
    with ensemble(5000, 5000, 0) as address:
        end_session(address, 7)


def test_the_number_of_tries_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_session, "_MAX_TRIES", 2)
    with (
        ensemble(5000, 5000) as address,
        pytest.raises(KitError, match="closed the connection 2 times"),
    ):
        end_session(address, 7)
