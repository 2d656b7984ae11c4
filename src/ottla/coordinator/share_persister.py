"""Asks the share coordinators about share partitions, here or on other brokers (KIP-932).

Each broker that coordinates gets one request of a kind at a time for a group; what is asked
meanwhile goes into the next one (Kafka's PersisterStateManager). A coordinator that is loading,
that has moved, or that cannot be reached is asked again, after pauses that grow, until the time is
over. A write that was not answered may have taken effect all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from ottla.coordinator.share_coordinator import ShareCoordinator
from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock
from ottla.share.record_state import stored_state
from ottla.share.shard import Summary
from ottla.share.share_partition import StoredState, Write
from ottla.share.state_batch import StateBatch
from ottla.share.stored import NO_EPOCH, ShareKey

logger = logging.getLogger("ottla.share")

FIRST_PAUSE_MS: Final = 20
MAX_PAUSE_MS: Final = 1_000
LIMIT_MS: Final = 10_000
"""For one question with all its tries."""
MAX_PARTITIONS: Final = 500
"""Of one request."""
MAX_BATCHES: Final = 10_000
"""State batches of one request, but for one partition alone, which may have as many: they are made
at 2 us each. With no limit, 500 partitions would have more than a coordinator takes in a frame
(`frame_limits`)."""
AGAIN: Final = frozenset(
    (
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.not_coordinator,
        # The coordinator's metadata may be behind.
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.network_exception,
        ErrorCode.request_timed_out,
    )
)


_NOT_WANTED: Final = "The broker that asked does not coordinate the group any more."

IsWanted: TypeAlias = Callable[[], bool]


def _always() -> bool:
    return True


def _nothing_more() -> None:
    pass


class Kind(NamedTuple):
    """One of the five requests."""

    key: int
    version: int
    name: str
    topic: str
    """The struct of a topic."""
    result: Callable[[Any], Any]
    """What a partition's answer says, if it is no error."""


def _nothing(found: Any) -> None:
    return None


def _state(found: Any) -> StoredState:
    """Raises ValueError for a state that is never stored."""
    batches = [
        StateBatch(
            each.first_offset,
            each.last_offset,
            stored_state(each.delivery_state),
            each.delivery_count,
        )
        for each in found.state_batches
    ]
    return StoredState(found.state_epoch, found.start_offset, batches)


def _summary(found: Any) -> Summary:
    return Summary(
        found.state_epoch, found.leader_epoch, found.start_offset, found.delivery_complete_count
    )


INITIALIZE: Final = Kind(83, 0, "InitializeShareGroupState", "InitializeStateData", _nothing)
READ: Final = Kind(84, 0, "ReadShareGroupState", "ReadStateData", _state)
WRITE: Final = Kind(85, 1, "WriteShareGroupState", "WriteStateData", _nothing)
DELETE: Final = Kind(86, 0, "DeleteShareGroupState", "DeleteStateData", _nothing)
SUMMARY: Final = Kind(87, 1, "ReadShareGroupStateSummary", "ReadStateSummaryData", _summary)


class Where(Protocol):
    """How the coordinator of a share partition is found."""

    def broker(self, key: ShareKey) -> int | None:
        """The broker that coordinates it; None if there is none now."""

    async def create(self) -> None:
        """Creates `__share_group_state` unless it exists. Raises ApiError."""


class _Question(NamedTuple):
    key: ShareKey
    fields: dict[str, Any]
    answer: asyncio.Future[Any]
    is_wanted: IsWanted


_Queue = tuple[int, Kind, str]
"""Broker, kind and group."""


class SharePersister:
    """For the event loop's thread only."""

    def __init__(
        self,
        coordinator: ShareCoordinator,
        where: Where,
        ask: Callable[[int, Any], Awaitable[Any]],
        *,
        own_id: int,
        clock: Clock,
    ) -> None:
        """`ask` sends a request to another broker, and raises PeerError."""
        self._coordinator = coordinator
        self._where = where
        self._ask = ask
        self._own_id = own_id
        self._clock = clock
        self._waiting: dict[_Queue, list[_Question]] = {}
        """The questions of the next requests; a queue is here while one is sent."""
        self._background = Background(logger, "asking share coordinators")

    def close(self) -> None:
        """Ends what waits with NETWORK_EXCEPTION."""
        self._background.cancel()
        for questions in self._waiting.values():
            _fail(questions, ErrorCode.network_exception, "This broker is stopping.")
        self._waiting.clear()

    # All raise ApiError: what the coordinator says, or why it could not be asked.

    # `is_wanted` is asked before each try: once it is False there is no other (NOT_COORDINATOR).

    async def initialize(
        self, key: ShareKey, state_epoch: int, start_offset: int, is_wanted: IsWanted = _always
    ) -> None:
        """Begins the state of a share partition; `start_offset` -1: its first leader chooses."""
        await self._until_answered(
            key,
            INITIALIZE,
            lambda: self._coordinator.initialize(key, state_epoch, start_offset),
            {"state_epoch": state_epoch, "start_offset": start_offset},
            is_wanted,
        )

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredState:
        """The state, which from now on this leader epoch changes; -1 only looks."""
        found: StoredState = await self._until_answered(
            key,
            READ,
            lambda: self._coordinator.read(key, leader_epoch),
            {"leader_epoch": leader_epoch},
        )
        return found

    async def write(self, key: ShareKey, state_epoch: int, leader_epoch: int, write: Write) -> None:
        """Writes what has changed."""
        await self._until_answered(
            key,
            WRITE,
            lambda: self._coordinator.write(key, state_epoch, leader_epoch, write),
            {
                "state_epoch": state_epoch,
                "leader_epoch": leader_epoch,
                "start_offset": write.start_offset,
                "delivery_complete_count": write.delivery_complete_count,
                "state_batches": write.batches,
            },
        )

    async def delete(
        self,
        key: ShareKey,
        is_wanted: IsWanted = _always,
        unanswered: Callable[[], None] = _nothing_more,
    ) -> None:
        """Deletes the state. `unanswered` is called after each try that had no answer."""
        await self._until_answered(
            key, DELETE, lambda: self._coordinator.delete(key), {}, is_wanted, unanswered
        )

    async def summary(self, key: ShareKey) -> Summary:
        """Where the share partition stands."""
        found: Summary = await self._until_answered(
            key, SUMMARY, lambda: self._coordinator.summary(key), {"leader_epoch": NO_EPOCH}
        )
        return found

    async def _until_answered(
        self,
        key: ShareKey,
        kind: Kind,
        ask_here: Callable[[], Awaitable[Any]],
        fields: dict[str, Any],
        is_wanted: IsWanted = _always,
        unanswered: Callable[[], None] = _nothing_more,
    ) -> Any:
        until_ms = self._clock.monotonic_ms() + LIMIT_MS
        pause_ms = FIRST_PAUSE_MS
        while True:
            if not is_wanted():
                raise ApiError(ErrorCode.not_coordinator, _NOT_WANTED)
            try:
                return await self._once(key, kind, ask_here, fields, is_wanted)
            except ApiError as error:
                if error.code is ErrorCode.network_exception:
                    unanswered()
                is_over = self._clock.monotonic_ms() + pause_ms > until_ms
                if error.code not in AGAIN or is_over:
                    raise
            await asyncio.sleep(pause_ms / 1000)
            pause_ms = min(2 * pause_ms, MAX_PAUSE_MS)

    async def _once(
        self,
        key: ShareKey,
        kind: Kind,
        ask_here: Callable[[], Awaitable[Any]],
        fields: dict[str, Any],
        is_wanted: IsWanted,
    ) -> Any:
        broker = self._where.broker(key)
        if broker is None:
            await self._where.create()
            raise ApiError(
                ErrorCode.coordinator_not_available, "The share coordinator is not available."
            )
        if broker == self._own_id:
            return await ask_here()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        question = _Question(key, fields, answer, is_wanted)
        queue = (broker, kind, key.group_id)
        waiting = self._waiting.get(queue)
        if waiting is None:
            self._waiting[queue] = [question]
            self._background.spawn(self._ask_in_turn(queue))
        else:
            waiting.append(question)
        return await answer

    async def _ask_in_turn(self, queue: _Queue) -> None:
        sent: list[_Question] = []
        try:
            while waiting := self._waiting[queue]:
                sent, self._waiting[queue] = _one_of_each(_wanted(waiting))
                if sent:
                    await self._send(queue, sent)
                sent = []
        finally:
            # Nothing is left, but for a failure.
            left = [*sent, *self._waiting.pop(queue, ())]
            _fail(left, ErrorCode.network_exception, "The question was not answered.")

    async def _send(self, queue: _Queue, questions: Sequence[_Question]) -> None:
        broker, kind, _ = queue
        try:
            response = await self._ask(broker, _request(queue, questions))
        except PeerError as error:
            logger.info("share coordinator at broker %d: %s", broker, error)
            _fail(questions, ErrorCode.network_exception, str(error))
            return
        found = {
            (topic.topic_id, each.partition): each
            for topic in response.results
            for each in topic.partitions
        }
        for question in questions:
            result = found.get((question.key.topic_id, question.key.partition))
            if result is None:
                _fail([question], ErrorCode.unknown_server_error, "The answer is incomplete.")
            elif result.error_code is not ErrorCode.none:
                _fail([question], result.error_code, result.error_message)
            elif not question.answer.done():  # otherwise its caller was cancelled
                try:
                    question.answer.set_result(kind.result(result))
                except ValueError as error:
                    _fail([question], ErrorCode.unknown_server_error, str(error))


def _wanted(waiting: list[_Question]) -> list[_Question]:
    """Those that are still wanted; the others are answered."""
    left = []
    for question in waiting:
        if question.is_wanted():
            left.append(question)
        else:
            _fail([question], ErrorCode.not_coordinator, _NOT_WANTED)
    return left


def _one_of_each(waiting: list[_Question]) -> tuple[list[_Question], list[_Question]]:
    """The next request's questions and the others: a request has each share partition once, in
    the order of its questions.
    """
    chosen: dict[ShareKey, _Question] = {}
    others: list[_Question] = []
    batches = 0
    for number, question in enumerate(waiting):
        count = len(question.fields.get("state_batches", ()))
        if chosen and (len(chosen) == MAX_PARTITIONS or batches + count > MAX_BATCHES):
            others += waiting[number:]
            break
        if question.key in chosen:
            others.append(question)
        else:
            chosen[question.key] = question
            batches += count
    return list(chosen.values()), others


def _request(queue: _Queue, questions: Sequence[_Question]) -> Any:
    _, kind, group_id = queue
    build = messages_of(kind.key, kind.version, "request")
    topics: dict[Any, list[Any]] = {}
    for question in questions:
        fields = dict(question.fields)
        if "state_batches" in fields:
            fields["state_batches"] = tuple(
                build.StateBatch(
                    first_offset=each.first,
                    last_offset=each.last,
                    delivery_state=each.state,
                    delivery_count=each.delivery_count,
                )
                for each in fields["state_batches"]
            )
        topics.setdefault(question.key.topic_id, []).append(
            build.PartitionData(partition=question.key.partition, **fields)
        )
    new_topic = getattr(build, kind.topic)
    return getattr(build, f"{kind.name}Request")(
        group_id=group_id,
        topics=tuple(
            new_topic(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        ),
    )


def _fail(questions: Sequence[_Question], code: ErrorCode, message: str | None) -> None:
    for question in questions:
        if not question.answer.done():
            question.answer.set_exception(ApiError(code, message))
            # Retrieved here: a caller that is cancelled at this moment never does.
            question.answer.exception()
