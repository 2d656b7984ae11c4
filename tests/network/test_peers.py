"""The addresses of the other brokers, and the client ids of the connections."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.config.listener import Endpoint
from ottla.network.peer import PeerError, Probe
from ottla.network.peers import Peers


def peers_of(endpoints: dict[int, Endpoint]) -> Peers:
    config: Any = SimpleNamespace(
        id=1, socket_request_max_bytes=100, replica_fetch_response_max_bytes=100
    )
    return Peers(config, endpoints.get)


def test_the_address_is_the_current_one() -> None:
    endpoints = {2: Endpoint("REPLICATION", "b", 2)}
    peers = peers_of(endpoints)
    assert peers.address(2) == ("b", 2)
    del endpoints[2]
    assert peers.address(2) is None


async def test_one_connection_for_each_broker_and_purpose() -> None:
    peers = peers_of({})
    peer = peers.peer(2, "metadata")
    assert peer.client_id == "broker-1-metadata"
    assert peers.peer(2, "metadata") is peer
    assert peers.peer(2, "fetcher-0") is not peer
    peers.drop(2, "metadata")
    with pytest.raises(PeerError, match="is closed"):
        await peer.ask_json(20_001, {}, 1_000)
    assert peers.peer(2, "metadata") is not peer
    peers.close()


async def test_those_who_ask_at_the_same_time_share_an_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = {"b": Probe.REFUSED, "c": Probe.ALIVE, "d": Probe.UNKNOWN}
    tried: list[str] = []

    async def attempt(host: str, port: int, timeout_ms: int) -> Probe:
        tried.append(host)
        await asyncio.sleep(0)
        return answers[host]

    monkeypatch.setattr("ottla.network.peers.probe", attempt)
    hosts = {2: "b", 3: "c", 4: "d"}
    peers = peers_of({each: Endpoint("REPLICATION", host, 1) for each, host in hosts.items()})
    asked = (2, 2, 3, 4, 5)
    found = await asyncio.gather(*(peers.refuses(each, 50) for each in asked))
    assert found == [True, True, False, False, False]
    assert tried == ["b", "c", "d"]
    answers["b"] = Probe.ALIVE
    assert not await peers.refuses(2, 50)
