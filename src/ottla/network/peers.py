"""The other brokers: one connection for each broker and purpose.

Each purpose has its own connection because a broker answers a connection's requests in turn: a long
poll would delay the requests after it. Every connection names its broker and purpose as
client id (`broker-1-metadata`), from its first request on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from ottla.config import BrokerConfig
from ottla.config.listener import Endpoint
from ottla.network.broker_identity import BrokerIdentity
from ottla.network.peer import Peer, Probe, probe
from ottla.network.peer_security import NO_SECURITY, PeerSecurity


class Peers:
    """Connections by broker and purpose, opened at first use."""

    def __init__(
        self,
        config: BrokerConfig,
        endpoint_of: Callable[[int], Endpoint | None],
        security: PeerSecurity = NO_SECURITY,
        identity: BrokerIdentity | None = None,
    ) -> None:
        """`endpoint_of` returns a broker's current endpoint; None if it is not registered. With
        `identity`, each connection begins with the proof of which brokers its ends are.
        """
        self._identity = identity
        self._config = config
        self.security = security
        self._endpoint_of = endpoint_of
        self._peers: dict[tuple[int, str], Peer] = {}
        self._probes: dict[int, asyncio.Task[Probe]] = {}

    def peer(self, broker_id: int, purpose: str) -> Peer:
        """The connection to a broker for one purpose, such as "metadata" or "fetcher-0"."""
        found = self._peers.get((broker_id, purpose))
        if found is None:
            config = self._config
            identity = self._identity
            found = self._peers[broker_id, purpose] = Peer(
                f"broker {broker_id}",
                lambda: self.address(broker_id),
                f"broker-{config.id}-{purpose}",
                # A first batch over the limit is sent whole; no batch in a log is larger than a
                # Produce request.
                max_frame_bytes=config.socket_request_max_bytes
                + config.replica_fetch_response_max_bytes,
                security=self.security,
                introduce=None if identity is None else partial(identity.introduce, broker_id),
            )
        return found

    def address(self, broker_id: int) -> tuple[str, int] | None:
        """Host and port of a broker; None if it is not registered."""
        endpoint = self._endpoint_of(broker_id)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def lost_at(self, broker_id: int) -> float | None:
        """When a connection to the broker was last lost, on the loop's clock; None if each of them
        has had a response since.
        """
        times = [
            peer.lost_at
            for (number, _), peer in self._peers.items()
            if number == broker_id and peer.lost_at is not None
        ]
        return max(times, default=None)

    async def refuses(self, broker_id: int, timeout_ms: int) -> bool:
        """Whether a broker's listener is closed. Those who ask at the same time share an attempt,
        because many clients ask when a broker ends.
        """
        address = self.address(broker_id)
        if address is None:
            return False
        task = self._probes.get(broker_id)
        if task is None:
            task = self._probes[broker_id] = asyncio.create_task(probe(*address, timeout_ms))
            task.add_done_callback(lambda _: self._probes.pop(broker_id, None))
        return await asyncio.shield(task) is Probe.REFUSED

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
