from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.coordination.zookeeper import State, ZooKeeperTree
from ottla.testing import zookeeper_server
from ottla.testing.zookeeper_jars import JarsError
from ottla.testing.zookeeper_server import (
    ZooKeeperEnsemble,
    ZooKeeperError,
    ZooKeeperServer,
    zookeeper_command,
)


@pytest.fixture(autouse=True)
def _needs_zookeeper(request: pytest.FixtureRequest) -> None:
    if "tmp_path" in request.fixturenames:
        try:
            zookeeper_command()
        except ZooKeeperError as error:
            pytest.skip(str(error))


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[ZooKeeperEnsemble]:
    ensemble = ZooKeeperEnsemble(tmp_path, 3)
    ensemble.start()
    yield ensemble
    ensemble.stop()


def test_a_server_keeps_its_data_across_restarts(tmp_path: Path) -> None:
    server = ZooKeeperServer(tmp_path)
    server.start()
    assert server.mode() == "standalone"
    assert server.ask("ruok") == "imok"
    server.stop()
    assert not server.running
    assert server.mode() is None
    server.start()
    server.kill()
    assert not server.running
    server.kill()


def test_the_error_shows_why_a_server_did_not_start(tmp_path: Path) -> None:
    first = ZooKeeperServer(tmp_path / "first")
    first.start()
    second = ZooKeeperServer(tmp_path / "second", first.port)
    with pytest.raises(ZooKeeperError, match=r"(?s)ZooKeeper 1 ended.*in use"):
        second.start()
    second.kill()
    first.stop()


async def test_sessions_survive_a_new_ensemble_leader(ensemble: ZooKeeperEnsemble) -> None:
    modes = [server.mode() for server in ensemble.servers]
    assert sorted(map(str, modes)) == ["follower", "follower", "leader"]
    tree = ZooKeeperTree(ensemble.connect, session_timeout_ms=20_000, connection_timeout_ms=20_000)
    session = await tree.connect()
    await session.create("/e", b"1", ephemeral=True)
    ensemble.servers[modes.index("leader")].kill()
    node = await session.get("/e")
    assert node.owner == session.number
    ensemble.expire(session.number)
    other = await tree.connect()
    assert await other.exists("/e") is None
    assert session.state is not State.CONNECTED or (await other.read_tree("/")).keys() == {"/"}
    await session.close()
    await other.close()


def test_expire_uses_a_server_that_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble = ZooKeeperEnsemble(Path("nowhere"), 2)
    first, second = ensemble.servers
    # The survivors hold an election; then the second one serves.
    modes: dict[ZooKeeperServer, list[str | None]] = {first: [None, None], second: [None, "leader"]}
    ended: list[tuple[ZooKeeperServer, int]] = []
    monkeypatch.setattr(ZooKeeperServer, "running", True)
    monkeypatch.setattr(ZooKeeperServer, "mode", lambda server: modes[server].pop(0))
    monkeypatch.setattr(
        ZooKeeperServer, "expire", lambda server, session: ended.append((server, session))
    )
    ensemble.expire(7)
    assert ended == [(second, 7)]
    monkeypatch.setattr(zookeeper_server, "START_TIMEOUT_S", -1)
    modes |= {first: [None], second: [None]}
    with pytest.raises(ZooKeeperError, match="no ZooKeeper serves"):
        ensemble.expire(7)
    monkeypatch.setattr(ZooKeeperServer, "running", False)
    with pytest.raises(ZooKeeperError, match="no ZooKeeper runs"):
        ensemble.expire(7)


def test_missing_jars_and_a_missing_java_are_errors_of_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_network(_tell: object) -> list[Path]:
        raise JarsError("cannot download ZooKeeper")

    monkeypatch.setattr(zookeeper_server, "zookeeper_jars", no_network)
    with pytest.raises(ZooKeeperError, match="cannot download ZooKeeper"):
        zookeeper_command()
    monkeypatch.setattr(zookeeper_server, "find_java", lambda: None)
    with pytest.raises(ZooKeeperError, match=r"ottla\[zookeeper\]"):
        zookeeper_command()
