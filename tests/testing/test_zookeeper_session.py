from __future__ import annotations

from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla.testing.errors import KitError
from ottla.testing.zookeeper_server import ZooKeeperError, ZooKeeperServer, zookeeper_command
from ottla.testing.zookeeper_session import session_password


def test_the_password_is_the_one_that_the_server_gave(tmp_path: Path) -> None:
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
