"""Where the other brokers are, and under which name they are called."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.peer import PeerError
from ottla.broker.peers import Peers, inter_broker_endpoint
from ottla.config.listener import Endpoint
from ottla.controller.image import BrokerImage

CLIENTS, BROKERS = Endpoint("PLAINTEXT", "a", 1), Endpoint("REPLICATION", "b", 2)
BOTH = BrokerImage(2, (CLIENTS, BROKERS))


def peers_of(brokers: dict[int, BrokerImage]) -> Peers:
    config = SimpleNamespace(
        id=1,
        socket_request_max_bytes=100,
        replica_fetch_response_max_bytes=100,
        inter_broker_listener="REPLICATION",
    )
    node: Any = SimpleNamespace(config=config, image=SimpleNamespace(brokers=brokers))
    return Peers(node)


def test_brokers_meet_on_the_listener_named_or_on_the_first() -> None:
    assert inter_broker_endpoint(BOTH, "REPLICATION") == BROKERS
    assert inter_broker_endpoint(BOTH, "OTHER") == CLIENTS
    assert inter_broker_endpoint(BrokerImage(2, ()), "OTHER") is None


def test_the_address_is_that_of_the_image_at_present() -> None:
    brokers = {2: BOTH}
    peers = peers_of(brokers)
    assert peers.address(2) == ("b", 2)
    del brokers[2]
    assert peers.address(2) is None


async def test_one_connection_a_broker_and_purpose() -> None:
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
