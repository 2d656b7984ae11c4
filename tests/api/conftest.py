"""A controller behind the handlers of topics, settings and cluster, called over the wire.

`cluster.ask(key, version, ...)` encodes the request, has it answered by the handler that the
dispatch table names, and decodes the answer again, so that every version is really writable.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.senders import session_of

from ottla.api.table import find
from ottla.cluster.controller import Controller
from ottla.config.broker import BrokerConfig
from ottla.config.listener import Endpoint
from ottla.controller import layout
from ottla.controller.image import BrokerImage, ClusterImage
from ottla.controller.plan import Plan
from ottla.controller.topics import NewTopic
from ottla.coordination.embedded import EmbeddedTree
from ottla.network.request_context import RequestContext
from ottla.protocol.frames import (
    read_request_body,
    read_request_header,
    read_response,
    write_request,
    write_response,
)
from ottla.protocol.messages import Messages, messages_of


class Cluster:
    """One broker's controller, and requests to it."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.controller: Controller = node.controller
        self.config: BrokerConfig = node.config

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    async def create(self, *topics: NewTopic) -> None:
        results = await self.controller.create_topics(topics)
        assert not any(result.outcome.failed for result in results), results

    async def others_are(self, *numbers: int) -> None:
        """Register exactly these brokers beside this one, and wait for the controller."""
        session = self.node.membership.session
        wanted = {self.config.id, *numbers}
        there = set(map(int, await session.children(layout.BROKER_IDS)))
        for number in there - wanted:
            await session.delete(layout.broker_path(number))
        for number in wanted - there:
            endpoint = Endpoint("PLAINTEXT", f"broker-{number}.invalid", 9092)
            registered = BrokerImage(number, (endpoint,), directory_id=f"disk-{number}")
            data = layout.write_broker(registered, 0)
            await session.create(layout.broker_path(number), data)
        async with asyncio.timeout(60):
            while self.image.brokers.keys() != wanted:
                await asyncio.sleep(0.001)
            # After the plan that published them, which may have more elections to publish.
            await self.controller.carry_out(lambda: Plan(None))

    @staticmethod
    def request(key: int, version: int) -> Messages:
        """Builds request messages of that type and version."""
        return messages_of(key, version, "request")

    async def ask(self, request: Any) -> Any:
        """The answer to a request message, both sent through the codec."""
        frame = memoryview(write_request(request, 5, "tests"))[4:]
        header = read_request_header(frame)
        handler = find(header.key)
        assert handler is not None
        assert handler.min_version <= header.version <= handler.max_version
        context = RequestContext(
            broker=self.node,
            session=session_of(request, "PLAINTEXT", "reached.example.org", 19092),
            version=header.version,
            client_id="tests",
            messages=messages_of(header.key, header.version),
        )
        answer = await handler.answer(read_request_body(header, frame), context)
        parts = write_response(answer, header.correlation_id)
        correlation_id, response = read_response(
            header.key, header.version, memoryview(b"".join(bytes(part) for part in parts))[4:]
        )
        assert correlation_id == 5
        return response


@pytest.fixture
async def start_cluster(lone_node: Any) -> AsyncIterator[Callable[..., Awaitable[Cluster]]]:
    """Starts a cluster with these settings."""
    async with AsyncExitStack() as running:

        async def start(**settings: str) -> Cluster:
            config = BrokerConfig({name.replace("_", "."): text for name, text in settings.items()})
            tree = EmbeddedTree(None)
            running.push_async_callback(tree.close)
            node = lone_node(config, tree)
            await node.start()
            running.push_async_callback(node.membership.close)
            return Cluster(node)

        yield start


@pytest.fixture
async def cluster(start_cluster: Callable[..., Awaitable[Cluster]]) -> Cluster:
    """One with nothing set."""
    return await start_cluster()
