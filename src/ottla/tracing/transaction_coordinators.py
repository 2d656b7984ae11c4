"""Asks the transaction coordinators of the cluster which transactional id a producer has.

A partition knows the producer ids of its open transactions. Their transactional ids, and when they
time out, only the coordinators know, and any broker may be one: all are asked, as Kafka's
TransactionsCommand does (KIP-664).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from ottla.config import BrokerConfig
from ottla.controller.image import ClusterImage
from ottla.coordinator.transaction_coordinator import TransactionCoordinator
from ottla.journey.transactions import CoordinatedTransaction
from ottla.network.peer import PeerError
from ottla.network.peers import Peers
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.transactions.requests import ListFilter
from ottla.transactions.state import ONGOING, PREPARED
from ottla.transactions.stored import TopicPartition

LIST_TRANSACTIONS: Final = 66
DESCRIBE_TRANSACTIONS: Final = 65
ANSWER_WITHIN_MS: Final = 2_000
PURPOSE: Final = "journey"

_OPEN: Final = frozenset({ONGOING, *PREPARED})


class Coordinated(NamedTuple):
    """What the coordinators said."""

    transactions: dict[int, CoordinatedTransaction]
    """By producer id; without the producers that no coordinator knows."""
    unanswered: tuple[int, ...]
    """The brokers that did not answer."""


FindTransactions: TypeAlias = Callable[[frozenset[int], TopicPartition], Awaitable[Coordinated]]
"""Takes producer ids, and the partition in which they have an open transaction."""


class CoordinatingBroker(Protocol):
    """The parts of a broker that know its own transactions, and the way to the other brokers."""

    config: BrokerConfig
    transactions: TransactionCoordinator
    peers: Peers

    @property
    def image(self) -> ClusterImage:
        """The metadata image."""


async def find_transactions(
    producer_ids: frozenset[int], partition: TopicPartition, broker: CoordinatingBroker
) -> Coordinated:
    """The transactions of these producers. A broker that does not answer in time is listed."""
    own = broker.config.id
    asked = sorted({own, *broker.image.brokers})
    answers = await asyncio.gather(
        *(
            _own(producer_ids, partition, broker)
            if number == own
            else _of_another(number, producer_ids, partition, broker.peers)
            for number in asked
        )
    )
    found: dict[int, CoordinatedTransaction] = {}
    unanswered = []
    for number, answer in zip(asked, answers, strict=True):
        if answer is None:
            unanswered.append(number)
        else:
            found |= answer
    return Coordinated(found, tuple(unanswered))


async def _own(
    producer_ids: frozenset[int], partition: TopicPartition, broker: CoordinatingBroker
) -> dict[int, CoordinatedTransaction] | None:
    try:
        listed = await broker.transactions.list(ListFilter(producer_ids=producer_ids))
    except ApiError:
        return None
    return {
        value.producer_id: CoordinatedTransaction(
            transactional_id,
            broker.config.id,
            value.state.value,
            value.start_ms,
            value.timeout_ms,
            value.state in _OPEN and partition in value.partitions,
        )
        for transactional_id, value in listed
    }


async def _of_another(
    number: int, producer_ids: frozenset[int], partition: TopicPartition, peers: Peers
) -> dict[int, CoordinatedTransaction] | None:
    try:
        names = await _listed(number, producer_ids, peers)
        described = await _described(number, names, peers) if names else ()
    except (PeerError, ApiError):
        return None
    return {
        each.producer_id: CoordinatedTransaction(
            each.transactional_id,
            number,
            each.transaction_state,
            each.transaction_start_time,
            each.transaction_timeout,
            _is_open(each.transaction_state)
            and any(
                topic.topic == partition.topic and partition.partition in topic.partitions
                for topic in each.topics
            ),
        )
        for each in described
        if each.error_code is ErrorCode.none
    }


def _is_open(state: str) -> bool:
    return any(state == each.value for each in _OPEN)


async def _listed(number: int, producer_ids: frozenset[int], peers: Peers) -> list[str]:
    build = messages_of(LIST_TRANSACTIONS, 0, "request")
    request = build.ListTransactionsRequest(
        state_filters=(), producer_id_filters=tuple(producer_ids)
    )
    response = await peers.peer(number, PURPOSE).ask(request, ANSWER_WITHIN_MS)
    if response.error_code is not ErrorCode.none:
        raise ApiError(response.error_code)
    return [each.transactional_id for each in response.transaction_states]


async def _described(number: int, names: Iterable[str], peers: Peers) -> tuple[Any, ...]:
    build = messages_of(DESCRIBE_TRANSACTIONS, 0, "request")
    request = build.DescribeTransactionsRequest(transactional_ids=tuple(names))
    response = await peers.peer(number, PURPOSE).ask(request, ANSWER_WITHIN_MS)
    found: tuple[Any, ...] = response.transaction_states
    return found
