"""A node with `__transaction_state`, and requests to its coordinator in every version."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode


class TransactionApi:
    """Topic `t` has one partition; the state topic has three."""

    def __init__(self, node_call: Any) -> None:
        self.node = node_call.node
        self._call = node_call

    async def ask(self, name: str, version: int, /, **fields: Any) -> Any:
        """Sends a request as a client of this version would; fields it lacks are left out."""
        module = import_module(f"ottla.api.{name}")
        build = self._call.request(module.KEY, version)
        title = "".join(word.capitalize() for word in name.split("_"))
        return await self._call.ask(getattr(build, f"{title}Request")(**fields))

    def struct(self, name: str, key: int, version: int, /, **fields: Any) -> Any:
        """A struct inside a request of this version."""
        return getattr(self._call.request(key, version), name)(**fields)

    async def create(self, topic: str, partitions: int) -> None:
        await self._call.create(topic, partitions)

    async def most_calls(self, name: str, version: int, /, **fields: Any) -> tuple[Any, int]:
        """The answer, and how many calls the handler made at most in one go."""
        self._call.counts_calls = True
        answer = await self.ask(name, version, **fields)
        return answer, self._call.most_calls

    async def init(self, version: int = 5, **fields: Any) -> Any:
        wanted = {
            "transactional_id": "x",
            "transaction_timeout": 60_000,
            "producer_id": -1,
            "producer_epoch": -1,
        }
        return await self.ask("init_producer_id", version, **(wanted | fields))

    async def add(self, producer: Any, version: int = 3, *partitions: tuple[str, int]) -> Any:
        """AddPartitionsToTxn of a client; the errors by partition."""
        topics = tuple(
            self.struct("AddPartitionsToTxnTopic", 24, version, name=topic, partitions=(index,))
            for topic, index in partitions or (("t", 0),)
        )
        answer = await self.ask(
            "add_partitions_to_txn",
            version,
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=topics,
        )
        return {
            (topic.name, each.partition_index): each.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        }

    async def move(self, leader: int = 2) -> None:
        """Another broker (-1: none) coordinates the transactional id x from now on."""
        await self._call.appear(2)
        index = self.node.transactions.partition_for("x")
        replicas = (2, self.node.config.id)
        await self._call.place("__transaction_state", replicas, leader=leader, index=index)

    async def producer(self) -> tuple[int, int]:
        """A new producer of the transactional id x."""
        answer = await self.init()
        assert answer.error_code is ErrorCode.none
        return answer.producer_id, answer.producer_epoch

    async def end(self, producer: Any, version: int = 5, *, committed: bool = True) -> Any:
        return await self.ask(
            "end_txn",
            version,
            transactional_id="x",
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=committed,
        )


@pytest.fixture
async def api(start_node: Callable[..., Awaitable[Any]]) -> TransactionApi:
    call = await start_node(transaction_state_log_num_partitions="3")
    await call.create("t")
    assert not (await call.node.topic_creation.ensure_transactions_topic()).failed
    return TransactionApi(call)
