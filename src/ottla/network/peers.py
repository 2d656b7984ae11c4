"""The other brokers: one connection for each broker and purpose.

Each purpose has its own connection because a broker answers a connection's requests in turn: a long
poll would delay the requests after it. Every connection names its broker and purpose as
client id (`broker-1-metadata`), from its first request on.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.config import BrokerConfig
from ottla.config.listener import Endpoint
from ottla.network.peer import Peer


class Peers:
    """Connections by broker and purpose, opened at first use."""

    def __init__(self, config: BrokerConfig, endpoint_of: Callable[[int], Endpoint | None]) -> None:
        """`endpoint_of` returns a broker's current endpoint; None if it is not registered."""
        self._config = config
        self._endpoint_of = endpoint_of
        self._peers: dict[tuple[int, str], Peer] = {}

    def peer(self, broker_id: int, purpose: str) -> Peer:
        """The connection to a broker for one purpose, such as "metadata" or "fetcher-0"."""
        found = self._peers.get((broker_id, purpose))
        if found is None:
            config = self._config
            found = self._peers[broker_id, purpose] = Peer(
                f"broker {broker_id}",
                lambda: self.address(broker_id),
                f"broker-{config.id}-{purpose}",
                # A first batch over the limit is sent whole; no batch in a log is larger than a
                # Produce request.
                max_frame_bytes=config.socket_request_max_bytes
                + config.replica_fetch_response_max_bytes,
            )
        return found

    def address(self, broker_id: int) -> tuple[str, int] | None:
        """Host and port of a broker; None if it is not registered."""
        endpoint = self._endpoint_of(broker_id)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def lost_at(self, broker_id: int) -> float | None:
        """When a connection to the broker was last lost and not restored, on the loop's clock."""
        times = [
            peer.lost_at
            for (number, _), peer in self._peers.items()
            if number == broker_id and peer.lost_at is not None
        ]
        return max(times, default=None)

    def drop(self, broker_id: int, purpose: str) -> None:
        """Ends the connection for one purpose; the next `peer` is a new one."""
        found = self._peers.pop((broker_id, purpose), None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """Ends all connections. Waiting requests fail with a PeerError."""
        peers, self._peers = self._peers, {}
        for each in peers.values():
            each.close()
