"""A real ZooKeeper for the tests of the coordination tree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.testing.zookeeper_server import ZooKeeperError, ZooKeeperServer, zookeeper_command


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A real ZooKeeper for all tests of a process; each one uses its own chroot."""
    try:
        zookeeper_command()
    except ZooKeeperError as error:
        pytest.skip(str(error))
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.stop()
