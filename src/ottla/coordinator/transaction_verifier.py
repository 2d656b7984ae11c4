"""Asks the coordinator of a transaction about partitions that this broker leads, before the first
append there (KIP-890).

Each other coordinator gets one request at a time; what is asked meanwhile goes into the next one
(Kafka's AddPartitionsToTxnManager). A coordinator on this broker is called without a request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.protocol.versions import ADD_PARTITIONS_TO_TXN
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock
from ottla.shards.step import ProducerEpoch
from ottla.transactions.requests import EPOCH_BUMP_VERSION, AddRequest
from ottla.transactions.stored import TopicPartition
from ottla.transactions.verification import Asked, client_error

logger = logging.getLogger("ottla.transactions")

VERSION: Final = 5
MAX_TRANSACTIONS: Final = 1_000
"""Of one request."""

Errors = dict[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class Retry:
    """How long to ask again while the markers of the transaction before are written."""

    pause_ms: int
    limit_ms: int


@dataclass(slots=True)
class _Question:
    transactional_id: str
    producer: ProducerEpoch
    partitions: frozenset[TopicPartition]
    adds: bool
    answer: asyncio.Future[Errors]


class TransactionVerifier:
    """For the event loop's thread only."""

    def __init__(
        self,
        add: Callable[[AddRequest], Awaitable[ErrorCode]],
        verify: Callable[[str, ProducerEpoch, frozenset[TopicPartition]], Awaitable[Errors]],
        coordinator_of: Callable[[str], int | None],
        ask: Callable[[int, Any], Awaitable[Any]],
        *,
        own_id: int,
        retry: Retry,
        clock: Clock,
    ) -> None:
        """`add` and `verify` ask the coordinator of this broker, and raise ApiError;
        `coordinator_of` returns the broker that coordinates a transactional id, None if there is
        none now; `ask` sends a request to another broker, and raises PeerError."""
        self._add = add
        self._verify = verify
        self._coordinator_of = coordinator_of
        self._ask = ask
        self._own_id = own_id
        self._retry = retry
        self._clock = clock
        self._waiting: dict[int, list[_Question]] = {}
        """By coordinator: the questions of the next requests; it is here while one is sent."""
        self._background = Background(logger, "verifying transactions")

    def close(self) -> None:
        """Ends what waits with NETWORK_EXCEPTION."""
        self._background.cancel()
        for questions in self._waiting.values():
            _fail(questions, ErrorCode.network_exception)
        self._waiting.clear()

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        partitions: frozenset[TopicPartition],
        asked: Asked,
    ) -> Errors:
        """The error of each partition, NONE if the transaction may write there.

        With `asked` ADDED, a transaction whose markers are still being written is waited for, as
        `retry` says; then CONCURRENT_TRANSACTIONS is the answer.
        """
        until_ms = self._clock.monotonic_ms() + self._retry.limit_ms
        while True:
            errors = await self._once(transactional_id, producer, partitions, asked.adds)
            if not asked.adds or ErrorCode.concurrent_transactions not in errors.values():
                break
            if self._clock.monotonic_ms() + self._retry.pause_ms > until_ms:
                break
            await asyncio.sleep(self._retry.pause_ms / 1000)
        return {each: client_error(error, asked) for each, error in errors.items()}

    async def _once(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        partitions: frozenset[TopicPartition],
        adds: bool,
    ) -> Errors:
        coordinator = self._coordinator_of(transactional_id)
        if coordinator is None:
            return dict.fromkeys(partitions, ErrorCode.coordinator_not_available)
        if coordinator == self._own_id:
            return await self._ask_here(transactional_id, producer, partitions, adds)
        answer: asyncio.Future[Errors] = asyncio.get_running_loop().create_future()
        question = _Question(transactional_id, producer, partitions, adds, answer)
        waiting = self._waiting.get(coordinator)
        if waiting is None:
            self._waiting[coordinator] = [question]
            self._background.spawn(self._ask_in_turn(coordinator))
        else:
            waiting.append(question)
        return await answer

    async def _ask_here(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        partitions: frozenset[TopicPartition],
        adds: bool,
    ) -> Errors:
        try:
            if not adds:
                return await self._verify(transactional_id, producer, partitions)
            request = AddRequest(transactional_id, producer, partitions, EPOCH_BUMP_VERSION)
            error = await self._add(request)
        except ApiError as refused:
            error = refused.code
        return dict.fromkeys(partitions, error)

    async def _ask_in_turn(self, coordinator: int) -> None:
        sent: list[_Question] = []
        try:
            while waiting := self._waiting[coordinator]:
                sent, self._waiting[coordinator] = _one_of_each(waiting)
                await self._send(coordinator, sent)
                sent = []
        finally:
            # Nothing is left, but for a failure.
            _fail([*sent, *self._waiting.pop(coordinator, ())], ErrorCode.network_exception)

    async def _send(self, coordinator: int, questions: list[_Question]) -> None:
        build = messages_of(ADD_PARTITIONS_TO_TXN, VERSION, "request")
        request = build.AddPartitionsToTxnRequest(
            transactions=tuple(_transaction(build, question) for question in questions)
        )
        try:
            response = await self._ask(coordinator, request)
        except PeerError as error:
            logger.info("verifying transactions at broker %d: %s", coordinator, error)
            _fail(questions, ErrorCode.network_exception)
            return
        if response.error_code is not ErrorCode.none:
            _fail(questions, response.error_code)
            return
        found = {
            (result.transactional_id, topic.name, each.partition_index): each.partition_error_code
            for result in response.results_by_transaction
            for topic in result.topic_results
            for each in topic.results_by_partition
        }
        for question in questions:
            if not question.answer.done():  # otherwise its caller was cancelled
                question.answer.set_result(
                    {
                        each: found.get(
                            (question.transactional_id, *each), ErrorCode.network_exception
                        )
                        for each in question.partitions
                    }
                )


def _one_of_each(waiting: list[_Question]) -> tuple[list[_Question], list[_Question]]:
    """The next request's questions and the others: an answer names its transactional id only, so a
    request has each id once."""
    chosen: dict[str, _Question] = {}
    others = []
    for question in waiting:
        if question.transactional_id in chosen or len(chosen) == MAX_TRANSACTIONS:
            others.append(question)
        else:
            chosen[question.transactional_id] = question
    return list(chosen.values()), others


def _transaction(build: Any, question: _Question) -> Any:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(question.partitions):
        topics.setdefault(topic, []).append(index)
    return build.AddPartitionsToTxnTransaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer.producer_id,
        producer_epoch=question.producer.epoch,
        verify_only=not question.adds,
        topics=tuple(
            build.AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes))
            for topic, indexes in topics.items()
        ),
    )


def _fail(questions: list[_Question], error: ErrorCode) -> None:
    for question in questions:
        if not question.answer.done():
            question.answer.set_result(dict.fromkeys(question.partitions, error))
