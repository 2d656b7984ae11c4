"""The cluster parts of several brokers, on one tree and without connections."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.api.table import HANDLERS
from ottla.config import BrokerConfig
from ottla.coordination.embedded import EmbeddedTree
from ottla.network.client_session import ClientSession
from ottla.network.peer import PeerError
from ottla.network.request_context import RequestContext
from ottla.protocol.messages import messages_of


class Neighbours:
    """Brokers on one tree; they call each other instead of using connections."""

    def __init__(self, lone_node: Any) -> None:
        self.tree = EmbeddedTree(None)
        self.nodes: dict[int, Any] = {}
        """The brokers that the others can reach."""
        self.addresses: dict[int, tuple[str, int]] = {}
        """The addresses of brokers to probe."""
        self._lone_node = lone_node
        self._all: list[Any] = []

    def new(
        self,
        broker_id: int,
        *,
        directory_id: str | None = None,
        lock: str | None = None,
        **settings: str,
    ) -> Any:
        """A broker that has not started yet."""
        given = {name.replace("_", "."): text for name, text in settings.items()}
        peers = SimpleNamespace(
            peer=lambda asked, purpose: SimpleNamespace(
                ask=lambda request, timeout_ms: self._ask(broker_id, asked, request),
                ask_json=lambda key, document, timeout_ms: self._ask_json(
                    broker_id, asked, key, document
                ),
            ),
            address=self.addresses.get,
            drop=lambda asked, purpose: None,
        )
        node = self._lone_node(
            BrokerConfig({"node.id": str(broker_id), **given}),
            self.tree,
            peers=peers,
            directory_id=directory_id or f"folder {broker_id}",
            lock=lock,
        )
        self._all.append(node)
        return node

    async def start(self, broker_id: int, *, live: bool = True, **settings: str) -> Any:
        """A registered broker; with `live` it follows changes from now on."""
        node = self.new(broker_id, **settings)
        await node.start()
        self.nodes[broker_id] = node
        if live:
            node.membership.start()
        return node

    async def close(self) -> None:
        for node in self._all:
            await node.membership.close()
        await self.tree.close()

    async def _ask(self, sender: int, broker_id: int, request: Any) -> Any:
        key, version = request.__api_key__, request.__version__
        context = self._context(sender, broker_id, key, version)
        return await HANDLERS.find(key).answer(request, context)  # type: ignore[union-attr]

    async def _ask_json(self, sender: int, broker_id: int, key: int, document: Any) -> Any:
        context = self._context(sender, broker_id, key, 0)
        body = json.dumps(document).encode()
        return json.loads(await HANDLERS.find(key).answer(body, context))  # type: ignore[union-attr]

    def _context(self, sender: int, broker_id: int, key: int, version: int) -> RequestContext[Any]:
        if broker_id not in self.nodes:
            raise PeerError(f"broker {broker_id} refused the connection")
        in_json = HANDLERS.find(key).takes_json  # type: ignore[union-attr]
        return RequestContext(
            broker=self.nodes[broker_id],
            session=ClientSession(1, "", "", "", 0, broker_id=sender),
            version=version,
            client_id="tests",
            messages=None if in_json else messages_of(key, version),  # type: ignore[arg-type]
        )


@pytest.fixture
async def neighbours(lone_node: Any) -> AsyncIterator[Neighbours]:
    made = Neighbours(lone_node)
    yield made
    await made.close()


@pytest.fixture
def refusing_address() -> Iterator[tuple[str, int]]:
    """An address where nothing listens, or can begin to listen."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()
