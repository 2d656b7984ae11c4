"""The addresses of the other brokers, and the client ids of the connections."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.config.listener import Endpoint
from ottla.network.peer import PeerError
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
