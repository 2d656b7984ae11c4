"""ShareFetch (key 78, KIP-932): a member of a share group gets records that nobody else has.

v1: the first. v2: at most so many records (KIP-1206), locks are renewed (KIP-1222). The request may
also say what became of records (`share_acknowledgements`): that is taken first. Then it waits for
records, as Fetch does, until other requests of the connection are behind it, or max_wait is over.

A throttled member gets the records that it has acquired, and has to wait afterwards. Kafka's empty
answer would leave them locked until their time is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.api.context import Context
from ottla.api.current_leader import node_endpoints
from ottla.api.fetch_reads import MAX_RESPONSE_BYTES
from ottla.api.share_acknowledgements import (
    NO_ID,
    Acknowledging,
    acknowledgements,
    check_topic,
    is_renewal,
    leader_of,
    lock_ms,
    member_of,
)
from ottla.protocol.access import Access, Operation, Resource
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.replica.share_session import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    Member,
    ShareSession,
    TopicPartition,
    check_count,
)
from ottla.replica.shared_partition import NOTHING, Handed, SharedPartition
from ottla.runtime.slices import Slices
from ottla.runtime.waiting import Change, Waiter, Watched
from ottla.share.acquisition import AcquireMode, Wish

KEY: Final = 78
ACCESS: Final = (
    Access(Operation.READ, Resource.GROUP),
    Access(Operation.READ, Resource.TOPIC),
)

_MODE: Final = VersionedField(KEY, "ShareFetchRequest", "share_acquire_mode", 0)


READ_WEIGHT: Final = 50
"""A partition whose records are read and handed out counts as so many that are named: 100 us and
more."""


class _Answer(NamedTuple):
    """What a partition's part of the response says."""

    handed: Handed = NOTHING
    error: ApiError | None = None


NO_ANSWER: Final = _Answer()
_Answers = dict[TopicPartition, _Answer]


async def handle(request: Any, context: Context) -> Any:
    build, slices = context.messages, Slices()
    shares = context.broker.shared_partitions
    try:
        member = member_of(request, context)
        renews = is_renewal(request, context)
        if renews:
            _check_renewal(request)
        mode = _mode(request)
        said, refused = await acknowledgements(
            request, renews=renews, context=context, slices=slices
        )
        has_acks = bool(said or refused)
        session = await _session(request, member, has_acks, context, slices)
    except ApiError as error:
        return build.ShareFetchResponse(
            error_code=error.code, error_message=str(error), responses=(), node_endpoints=()
        )
    epoch = request.share_session_epoch
    acknowledging = Acknowledging(member, context)
    await acknowledging.begin(said, refused, slices)
    answers: _Answers = {}
    if epoch != FINAL_EPOCH and not renews:
        answers = await _Fetching(session, request, mode, context).run(slices)
    results = await acknowledging.results()
    if epoch == FINAL_EPOCH:
        shares.sessions.end(session)
    named = _named(session, answers, results)
    response = await _response(member, named, answers, results, context, slices)
    throttling = context.broker.throttling
    if answers and throttling.applies_to(context.session):
        size_bytes = sum(len(each.handed.data) for each in answers.values())
        response.throttle_time, _ = throttling.fetch(context, size_bytes)
    return response


def _check_renewal(request: Any) -> None:
    """Raises ApiError: INVALID_REQUEST."""
    wrong = [
        f"{name} must be set to 0, "
        for name, value in (
            ("maxBytes", request.max_bytes),
            ("minBytes", request.min_bytes),
            ("maxRecords", request.max_records),
            ("maxWaitMs", request.max_wait),
        )
        if value
    ]
    if wrong:
        raise ApiError(ErrorCode.invalid_request, f"{''.join(wrong)}if isRenewAck is true.")


def _mode(request: Any) -> AcquireMode:
    try:
        return AcquireMode(_MODE(request))
    except ValueError:
        raise ApiError(
            ErrorCode.invalid_request, f"There is no acquire mode {_MODE(request)}."
        ) from None


async def _session(
    request: Any, member: Member, has_acks: bool, context: Context, slices: Slices
) -> ShareSession:
    """`has_acks`: the request acknowledges something, right or wrong.

    Raises ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, INVALID_REQUEST;
    SHARE_SESSION_LIMIT_REACHED after the time that the request would have waited.
    """
    shares = context.broker.shared_partitions
    epoch = request.share_session_epoch
    if epoch == FINAL_EPOCH:
        return shares.sessions.get(member)
    named = []
    for topic in request.topics:
        for each in topic.partitions:
            await slices.count()
            named.append(TopicPartition(topic.topic_id or NO_ID, each.partition_index))
        check_count(len(named))
    if epoch != FIRST_EPOCH:
        session = shares.sessions.go_on(member, epoch)
        for where in named:
            session.partitions.setdefault(where, True)
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                await slices.count()
                session.partitions.pop(TopicPartition(topic.topic_id or NO_ID, index), None)
        shares.sessions.check_size(session)
        return session
    if has_acks:
        raise ApiError(
            ErrorCode.invalid_request, "The first request of a session acknowledges nothing."
        )
    try:
        session = shares.sessions.begin(member, context.session.connection_id, named)
    except ApiError as error:
        if error.code is ErrorCode.share_session_limit_reached:
            await asyncio.sleep(max(0, request.max_wait) / 1000)
        raise
    shares.watch(context.session)
    return session


class _Fetching:
    """Reads the partitions of a session until there is something to say."""

    def __init__(
        self, session: ShareSession, request: Any, mode: AcquireMode, context: Context
    ) -> None:
        self._session = session
        self._context = context
        self._shares = context.broker.shared_partitions
        self._member = session.member
        self._mode = mode
        self._batch_size = max(1, request.batch_size)
        self._records_left = max(0, request.max_records)
        self._bytes_left = self._most_bytes(request)
        self._min_bytes = min(request.min_bytes, self._bytes_left)
        self._until_ms = context.broker.clock.monotonic_ms() + max(0, request.max_wait)
        self._stuck: set[TopicPartition] = set()
        """Their log had nothing, although it seemed so: read again once something changes."""
        self._loading: dict[TopicPartition, SharedPartition] = {}
        self._likely_bytes = 0
        """Of the partitions that can be read now."""
        self.answers: _Answers = {}

    def _most_bytes(self, request: Any) -> int:
        broker = self._context.broker
        most: int = min(request.max_bytes, broker.config.fetch_max_bytes, MAX_RESPONSE_BYTES)
        if broker.throttling.applies_to(self._context.session):
            quota = broker.throttling.most_fetched_bytes(self._context)
            most = most if quota is None else min(most, quota)
        return max(0, most)

    async def run(self, slices: Slices) -> _Answers:
        partitions = list(self._session.partitions)
        if not partitions or not self._records_left or not self._bytes_left:
            return self.answers
        # Another one comes first each time (Kafka's PartitionRotateStrategy).
        turn = max(0, self._session.epoch) % len(partitions)
        partitions = partitions[turn:] + partitions[:turn]
        while not self._context.broker.closing:
            ready, watched = await self._look(partitions, slices)
            left_ms = self._until_ms - self._context.broker.clock.monotonic_ms()
            is_over = left_ms <= 0
            if self._likely_bytes < self._min_bytes and not is_over:
                ready = []
            await self._hand_out(ready, slices)
            is_over = is_over or bool(self._context.session.queued) or not self._is_wanted()
            if self.answers or is_over:
                return self.answers
            if not ready:
                await self._sleep(watched, left_ms)
        return self.answers

    def _is_wanted(self) -> bool:
        """The session has not ended, and is not another one's turn."""
        try:
            return self._shares.sessions.get(self._member) is self._session
        except ApiError:
            return False

    async def _look(
        self, partitions: Sequence[TopicPartition], slices: Slices
    ) -> tuple[list[tuple[TopicPartition, SharedPartition]], list[Watched]]:
        """What can be read, and what may change."""
        ready = []
        watched: list[Watched] = []
        self._likely_bytes = 0
        for where in partitions:
            await slices.count()
            try:
                check_topic(where, self._context)
                loading = self._loading.pop(where, None)
                if loading is not None and loading.failure is not None:
                    loading.is_told = True
                    raise loading.failure
                shared = self._shares.find(self._member.group_id, where)
                likely_bytes = 0
                if where not in self._stuck and shared.may_hand_out:
                    likely_bytes = shared.likely_bytes
            except ApiError as error:
                self.answers[where] = _Answer(error=error)
                continue
            watched.append(shared)
            if shared.is_loading:
                self._loading[where] = shared
                continue
            watched.append(shared.partition)
            if likely_bytes:
                ready.append((where, shared))
                self._likely_bytes += likely_bytes
            else:
                shared.check_state()
        return ready, watched

    async def _hand_out(
        self, ready: Sequence[tuple[TopicPartition, SharedPartition]], slices: Slices
    ) -> None:
        for number, (where, shared) in enumerate(ready):
            # What is read from the page cache does not wait, so that the next one follows at once.
            await slices.count(READ_WEIGHT)
            if self._records_left <= 0 or self._bytes_left <= 0:
                return
            if not shared.may_hand_out:
                continue  # another member is quicker
            before = shared.progress
            share_bytes = self._bytes_left // (len(ready) - number)
            wish = Wish(self._member.member_id, self._mode, self._records_left, self._batch_size)
            try:
                handed = await shared.hand_out(wish, share_bytes, self._is_wanted)
            except ApiError as error:
                topic, index = shared.partition.topic, shared.partition.index
                self._context.broker.storage_failure.read_failed(topic, index, error)
                if error.code is not ErrorCode.offset_out_of_range:
                    self.answers[where] = _Answer(error=error)
                    continue
                handed = NOTHING
            if handed.acquired:
                self.answers[where] = _Answer(handed)
                self._records_left -= sum(each.size for each in handed.acquired)
                self._bytes_left -= len(handed.data)
                shared.partition.counts.bytes_out += len(handed.data)
            elif shared.progress == before:
                self._stuck.add(where)

    async def _sleep(self, watched: Sequence[Watched], left_ms: int) -> None:
        waiter = Waiter(watched)
        client = self._context.session
        client.arrived = lambda: waiter.changed(None, Change.ANY)
        try:
            await waiter.wait(left_ms)
        finally:
            client.arrived = None
        self._stuck.clear()


def _named(
    session: ShareSession,
    answers: _Answers,
    results: Mapping[TopicPartition, ApiError | None],
) -> list[TopicPartition]:
    """The partitions of which the response says something (Kafka's CachedSharePartition)."""
    named = dict.fromkeys(results)
    for where, is_due in list(session.partitions.items()):
        answer = answers.get(where)
        has_error = answer is not None and answer.error is not None
        if is_due or has_error or (answer is not None and answer.handed.acquired):
            named[where] = None
        session.partitions[where] = has_error
    return list(named)


async def _response(
    member: Member,
    named: Sequence[TopicPartition],
    answers: _Answers,
    results: Mapping[TopicPartition, ApiError | None],
    context: Context,
    slices: Slices,
) -> Any:
    build = context.messages
    topics: dict[Any, list[Any]] = {}
    leaders: set[int] = set()
    for where in named:
        await slices.count(1 + len(answers.get(where, NO_ANSWER).handed.acquired))
        handed, error = answers.get(where, NO_ANSWER)
        code = ErrorCode.none if error is None else error.code
        leader = leader_of(where, code, context)
        leaders.add(leader.leader_id)
        said = results.get(where)
        topics.setdefault(where.topic_id, []).append(
            build.PartitionData(
                partition_index=where.partition,
                error_code=code,
                error_message=None if error is None else str(error),
                acknowledge_error_code=0 if said is None else said.code.value,
                acknowledge_error_message=None if said is None else str(said),
                current_leader=leader,
                records=handed.data,
                acquired_records=tuple(
                    build.AcquiredRecords(
                        first_offset=each.first,
                        last_offset=each.last,
                        delivery_count=each.delivery_count,
                    )
                    for each in handed.acquired
                ),
            )
        )
    return build.ShareFetchResponse(
        error_code=ErrorCode.none,
        acquisition_lock_timeout=lock_ms(member.group_id, context),
        responses=tuple(
            build.ShareFetchableTopicResponse(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        ),
        node_endpoints=node_endpoints(leaders, context),
    )
