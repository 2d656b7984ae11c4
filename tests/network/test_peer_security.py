"""A broker logs in at a real listener of another one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.network.test_listener import beat, new_server
from tests.security.authority import Authority

from ottla.config import BrokerConfig, ConfigError
from ottla.network.peer import Peer, PeerError
from ottla.network.peer_security import NO_SECURITY, Login, PeerSecurity, PeerTls, peer_security
from ottla.security.principal import Principal
from ottla.security.tls import TlsOptions

HOST = "127.0.0.1"


class Secured:
    def __init__(self, folder: Path, **more: str) -> None:
        self.authority = Authority()
        self.store = self.authority.issue("CN=broker").store(folder / "broker.pem")
        self.trust = self.authority.trust(folder / "trust.pem")
        module = 'M required username="broker" password="secret" user_broker="secret";'
        self.settings = {
            "listeners": f"SASL_SSL://{HOST}:0",
            "zookeeper.connect": "localhost:1",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": module,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
        } | {name.replace("_", "."): value for name, value in more.items()}
        self.config = BrokerConfig(self.settings)

    def peer(self, port: int, security: PeerSecurity | None = None) -> Peer:
        return Peer(
            "broker 2",
            lambda: (HOST, port),
            "broker-1",
            max_frame_bytes=1 << 20,
            security=security or peer_security(self.config),
        )


async def answer(peer: Peer) -> Any:
    return (await peer.ask(beat(5), 20_000)).throttle_time


async def test_a_broker_is_let_in(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    server = await new_server(secured.config)
    peer = secured.peer(server.port)
    assert list(await asyncio.gather(answer(peer), answer(peer))) == [5, 5]
    (connection,) = server.connections
    assert connection.session.principal == Principal("User", "broker")
    peer.close()
    await server.close(0)


async def test_a_session_is_renewed_by_another_connection(tmp_path: Path) -> None:
    secured = Secured(tmp_path, connections_max_reauth_ms="1000")
    server = await new_server(secured.config)
    peer = secured.peer(server.port)
    loop = asyncio.get_running_loop()
    until = loop.time() + 2.5
    seen: set[int] = set()
    while loop.time() < until:
        assert await answer(peer) == 5
        seen |= {each.session.connection_id for each in server.connections}
        await asyncio.sleep(0.01)
    assert len(seen) > 1
    assert peer.lost_at is None
    peer.close()
    await server.close(0)


@pytest.mark.parametrize(
    ("login", "said"),
    [
        (Login("PLAIN", "broker", "wrong"), "refused this broker: Authentication failed"),
        (Login("SCRAM-SHA-256", "broker", "secret"), "does not offer SASL mechanism SCRAM-SHA-256"),
    ],
)
async def test_a_broker_is_refused(tmp_path: Path, login: Login, said: str) -> None:
    secured = Secured(tmp_path)
    server = await new_server(secured.config)
    tls = peer_security(secured.config).tls
    peer = secured.peer(server.port, PeerSecurity(tls, login))
    for _ in range(2):
        with pytest.raises(PeerError, match=said):
            await answer(peer)
    peer.close()
    await server.close(0)


async def test_another_authority(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    server = await new_server(secured.config)
    tls = PeerTls(TlsOptions(trust_store=str(Authority().trust(tmp_path / "other.pem"))))
    peer = secured.peer(server.port, PeerSecurity(tls))
    with pytest.raises(PeerError, match=r"no TLS with broker 2 at .*unable to get local issuer"):
        await answer(peer)
    peer.close()
    await server.close(0)


def test_changed_files_are_followed(tmp_path: Path) -> None:
    trust = Authority().trust(tmp_path / "trust.pem")
    tls = PeerTls(TlsOptions(trust_store=str(trust)))
    old = tls.context()
    assert tls.context() is old
    trust.write_text("wrong")
    assert tls.context() is old
    Authority().trust(trust)
    assert tls.context() is not old


def test_what_the_settings_must_say(tmp_path: Path) -> None:
    assert peer_security(BrokerConfig()) is NO_SECURITY
    with pytest.raises(ConfigError, match=r"GSSAPI .* sasl\.mechanism\.inter\.broker\.protocol"):
        Secured(tmp_path, sasl_mechanism_inter_broker_protocol="GSSAPI")
    with pytest.raises(ConfigError, match="must have the username and the password"):
        Secured(tmp_path, sasl_mechanism_inter_broker_protocol="SCRAM-SHA-256")
