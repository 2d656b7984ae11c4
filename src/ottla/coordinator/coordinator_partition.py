"""Runs one shard: the state machine over one partition of a coordinator's topic.

A request or a timer becomes a step: the shard decides, the step's records are appended to the
partition and applied, and its replies go out when everything appended so far is committed, in the
order of the steps. So no client ever sees what a new leader might not know. Reads wait in the same
way. A crash between append and reply leaves the records: the client asks again.

Steps that share an append (`shared_append`) are applied before it, and their answers wait for it,
too. Whatever else happens to the shard comes after that append.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ottla.coordinator.coordinator_log import CoordinatorLog, Verification
from ottla.coordinator.loading import Loading
from ottla.coordinator.shard_kind import ShardKind, ShardT
from ottla.coordinator.shared_append import SharedAppend, size_bytes
from ottla.coordinator.timers import ShardTimers
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.clock import Clock
from ottla.runtime.repeated_failure import RepeatedFailure
from ottla.shards.step import ProducerEpoch, Reply, SetTimer, Step
from ottla.storage.after_rebuild import after_rebuild

logger = logging.getLogger("ottla.coordinator")

MAX_BATCH_RECORDS: Final = 1_000
"""Of a step that is not atomic."""
REPLIES_AT_ONCE: Final = 50
"""At 50 us each."""
MAX_WAITING_WORK: Final = 1_000
"""Entries of `Step.committed` that wait for their turn."""

T = TypeVar("T")


class _UncommittedStep(NamedTuple):
    """What waits until everything up to `offset` is committed."""

    offset: int
    replies: list[Reply]
    committed: list[Any]
    until: float = 0
    """On the loop's clock, if it waits: then the clients get an error. Each has its own time
    (Kafka's CoordinatorRuntime.OperationTimeout)."""


class CoordinatorPartition(Generic[ShardT]):
    """One shard with its log, timers and waiting replies; a reply's token is a future."""

    def __init__(
        self,
        kind: ShardKind[ShardT],
        index: int,
        log: CoordinatorLog,
        clock: Clock,
        refusals: RepeatedFailure,
    ) -> None:
        """Begins to load the shard. `refusals` is notified of each append that the log refuses."""
        self.name = f"{kind.topic}-{index}"
        self._kind = kind
        self.shard = kind.new_shard()
        self._log = log
        self._clock = clock
        self._timers = ShardTimers(self._expired)
        self._last_offset = -1
        """Of what was applied; records of `_shared` are not in the log yet."""
        self._shared: SharedAppend | None = None
        self._has_appended = False
        """Since it was loaded, by itself: before that nothing is shared."""
        self._uncommitted: deque[_UncommittedStep] = deque()
        self._replies: deque[tuple[asyncio.Future[Any], Any, ErrorCode | None]] = deque()
        """Due, and left for the next turns of the event loop."""
        self._work: deque[Any] = deque()
        """Committed, and not yet handed to the kind's `on_committed`."""
        self._is_handing_over = False
        self._replying: asyncio.Task[None] | None = None
        self._is_closed = False
        self._refusals = refusals
        self.is_active = False
        """Loaded and not closed: takes requests."""
        self.loading = asyncio.get_running_loop().create_task(self._load())

    async def _load(self) -> None:
        self._last_offset = await after_rebuild(self._read)
        self.is_active = True
        step = self._step()
        self.shard.loaded(step)
        self._carry_out(step)

    async def _read(self) -> int:
        """Into a new shard. Returns the log's last offset."""
        self.shard = self._kind.new_shard()
        return await Loading(self._kind, self.shard, self._log, self.name).run()

    @property
    def epoch(self) -> int:
        """The leader epoch under which this shard was loaded."""
        return self._log.leader_epoch

    @property
    def is_closed(self) -> bool:
        """Not led by this broker any more, or to be loaded again."""
        return self._is_closed

    @property
    def is_sharing(self) -> bool:
        """Something was applied that is appended later in this turn of the event loop."""
        return self._shared is not None

    # Requests.

    def decide(
        self, decide: Callable[[ShardT, Step[Any, Any, Any]], T], *, shares: bool = False
    ) -> T:
        """Lets the shard decide now; the result may go out once `committed` has returned.

        `shares`: its records may be appended with those of others, at the end of this turn of the
        event loop. Raises ApiError: NOT_COORDINATOR once the partition is closed, and the error of
        an append that is refused.
        """
        if self._shared is not None and not shares:
            self._append_shared()
        self._check_active()
        step = self._step()
        result = decide(self.shard, step)
        self._carry_out(step, shares=shares)
        return result

    async def park(self, decide: Callable[[ShardT, Step[Any, Any, Any], Any], None]) -> Any:
        """The same for a request whose reply comes with this or a later step.

        `decide` gets the token of the reply; the result is that reply, committed.
        """
        self._append_shared()
        self._check_active()
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        step = self._step()
        decide(self.shard, step, reply)
        try:
            self._carry_out(step)
        except ApiError:
            # `when_refused` may have replied.
            if not reply.done():
                raise
        return await reply

    def begin_verification(self, producer: ProducerEpoch, *, version_2: bool) -> Verification:
        """See `CoordinatorLog`. Raises ApiError, the error for the client."""
        self._check_active()
        try:
            return self._log.begin_verification(producer, version_2=version_2)
        except ApiError as error:
            raise ApiError(self._kind.error_of(error.code), error.message) from None

    def _check_active(self) -> None:
        if not self.is_active:
            raise ApiError(ErrorCode.not_coordinator)

    @property
    def is_behind(self) -> bool:
        """Something that was applied is not committed yet, or not even appended."""
        return self._shared is not None or self._last_offset >= self._log.high_watermark

    async def committed(self) -> None:
        """Waits until everything decided so far is committed; raises ApiError otherwise."""
        offset = self._last_offset
        error = None if self._shared is None else await self._shared.appended()
        if error is None and (self._is_closed or offset >= self._log.high_watermark):
            error = await self._commit_error(offset, self._deadline())
        if error is not None:
            raise ApiError(error)

    # Steps.

    def _step(self) -> Step[Any, Any, Any]:
        return Step(self._clock.now_ms(), self._kind.settings)

    def _carry_out(self, step: Step[Any, Any, Any], *, shares: bool = False) -> None:
        """Does what a step asks for; raises ApiError if its records are refused."""
        if step.records or step.marker is not None:
            error = self._share(step) if shares else self._append(step)
            if error is not None:
                if step.when_refused is not None:
                    later = self._step()
                    step.when_refused(later, error)
                    self._carry_out(later)
                raise ApiError(error)
        for timer in step.timers:
            if isinstance(timer, SetTimer):
                self._timers.set(timer.key, timer.delay_ms, timer.event)
            else:
                self._timers.cancel(timer.key)
        if step.replies or step.committed:
            waiting = _UncommittedStep(self._last_offset, step.replies, step.committed)
            if self._shared is not None:
                self._shared.steps.append(waiting)
            else:
                self._reply_when_committed(waiting)
        if step.when_appended is not None:
            later = self._step()
            step.when_appended(later)
            self._carry_out(later, shares=shares)

    def _append(self, step: Step[Any, Any, Any]) -> ErrorCode | None:
        """Appends and applies; returns the error for the client if the log refuses."""
        self._append_shared()
        if self._is_closed:
            # The next coordinator that reads the log, here or elsewhere, decides from now on.
            return ErrorCode.not_coordinator
        try:
            if step.marker is not None:
                assert not step.records, "a step has either records or a marker"
                self._append_marker(step)
            else:
                self._append_records(step)
        except ApiError as error:
            return self._refused(error, len(step.records))
        self._has_appended = True
        return None

    def _refused(self, error: ApiError, count: int) -> ErrorCode:
        """The error for the client."""
        self._refusals.log("%s: cannot append %d records: %s", self.name, count, error)
        return self._kind.error_of(error.code)

    def _append_records(self, step: Step[Any, Any, Any]) -> None:
        encode, producer, now_ms = self._kind.encode, step.producer, step.now_ms
        size = len(step.records) if step.is_atomic else MAX_BATCH_RECORDS
        for start in range(0, len(step.records), size):
            batch = step.records[start : start + size]
            contents = (
                [encode(record) for record in batch]
                if step.encoded is None
                else step.encoded[start : start + size]
            )
            last_offset = self._log.append(contents, now_ms, producer, step.guard)
            first_offset = last_offset - len(batch) + 1
            with _OrReload(self):
                for offset, record in enumerate(batch, first_offset):
                    self.shard.apply(record, offset, now_ms, producer)
            self._last_offset = last_offset

    def _append_marker(self, step: Step[Any, Any, Any]) -> None:
        assert step.marker is not None
        offset = self._log.append_marker(step.marker, step.now_ms)
        with _OrReload(self):
            self.shard.apply_marker(step.marker, offset)
        self._last_offset = offset

    def _share(self, step: Step[Any, Any, Any]) -> ErrorCode | None:
        """Applies a step's records, which are appended at the end of this turn of the event loop;
        appends at once what must not wait or is too large. Returns the same.
        """
        is_special = step.marker is not None or step.producer is not None or not step.is_atomic
        if not self._has_appended or is_special or step.when_refused is not None:
            return self._append(step)
        if step.encoded is None:
            step.encoded = list(map(self._kind.encode, step.records))
        size, max_bytes = size_bytes(step.encoded), self._log.max_batch_bytes
        if self._shared is not None and not self._shared.takes(len(step.records), size):
            self._append_shared()
        if self._is_closed:
            return ErrorCode.not_coordinator
        shared = self._shared or SharedAppend(step.now_ms, max_bytes)
        if not shared.takes(len(step.records), size):
            return self._append(step)
        if self._shared is None:
            try:
                self._log.check()
            except ApiError as error:
                return self._refused(error, len(step.records))
            self._shared = shared
            asyncio.get_running_loop().call_soon(self._append_shared)
        shared.add(step.encoded, size)
        offset = self._last_offset
        with _OrReload(self):
            for record in step.records:
                offset += 1
                self.shard.apply(record, offset, shared.now_ms, None)
        self._last_offset = offset
        return None

    def _append_shared(self) -> None:
        """Appends what steps share. If the log refuses, memory has what the log has not: the
        partition is closed, and loaded again with the next request.

        All in it ask again, whatever the log refuses it for: no single step is the reason, and
        members end at an UNKNOWN_SERVER_ERROR. The first one is alone then, and hears the reason.
        """
        shared = self._shared
        if shared is None:
            return
        is_appended = False
        try:
            is_appended = self._append_contents(shared)
        finally:
            if not is_appended:
                self.close()
        if is_appended:
            self._shared = None
            try:
                for step in shared.steps:
                    self._reply_when_committed(step)
            finally:
                shared.finish(None)

    def _append_contents(self, shared: SharedAppend) -> bool:
        try:
            last_offset = self._log.append(shared.contents, shared.now_ms, None)
        except ApiError as error:
            self._refused(error, len(shared.contents))
            return False
        if last_offset != self._last_offset:
            # Applied with other offsets than the log has: Kafka loads again, too.
            logger.error(
                "%s: records up to offset %d are at %d; loading again",
                self.name,
                self._last_offset,
                last_offset,
            )
            return False
        return True

    def _expired(self, event: Any) -> None:
        self._append_shared()
        if self._is_closed:
            return
        step = self._step()
        self.shard.expired(event, step)
        try:
            self._carry_out(step)
        except ApiError as error:
            # No request waits for the outcome, and `when_refused` has seen the error.
            logger.debug("%s: timer %s: %s", self.name, event, error)

    # Replies, and what else waits for the high watermark.

    def _reply_when_committed(self, step: _UncommittedStep) -> None:
        if not self.is_behind and not self._uncommitted:
            self._finish(step, None)
            return
        self._uncommitted.append(step._replace(until=self._deadline()))
        if self._replying is None or self._replying.done():
            loop = asyncio.get_running_loop()
            self._replying = loop.create_task(self._reply_in_order())

    async def _reply_in_order(self) -> None:
        while self._uncommitted:
            first = self._uncommitted[0]
            error = await self._commit_error(first.offset, first.until)
            self._finish(self._uncommitted.popleft(), error)

    def _finish(self, step: _UncommittedStep, error: ErrorCode | None) -> None:
        if self._replies or len(step.replies) > REPLIES_AT_ONCE:
            is_begun = bool(self._replies)
            self._replies += [(future, result, error) for future, result in step.replies]
            if not is_begun:
                self._reply_to_some()
        else:
            for future, result in step.replies:
                _reply(future, result, error)
        if error is None and step.committed:
            self._hand_over(step.committed)

    def _reply_to_some(self) -> None:
        """Others have their turn between the members of a large group: each writes a response."""
        for _ in range(min(REPLIES_AT_ONCE, len(self._replies))):
            _reply(*self._replies.popleft())
        if self._replies:
            asyncio.get_running_loop().call_soon(self._reply_to_some)

    def _hand_over(self, committed: list[Any]) -> None:
        """Hands work to the kind in order: the first entry now, others between other callbacks."""
        if self._kind.on_committed is None:
            return
        self._work += committed
        if not self._is_handing_over:
            self._hand_over_next()
        while len(self._work) > MAX_WAITING_WORK:
            self._kind.on_committed(self._work.popleft())

    def _hand_over_next(self) -> None:
        assert self._kind.on_committed is not None
        self._is_handing_over = True
        try:
            if self._work:
                self._kind.on_committed(self._work.popleft())
        finally:
            self._is_handing_over = bool(self._work)
            if self._work:
                asyncio.get_running_loop().call_soon(self._hand_over_next)

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._kind.commit_timeout_ms / 1000

    async def _commit_error(self, offset: int, until: float) -> ErrorCode | None:
        if self._is_closed:
            return ErrorCode.not_coordinator
        try:
            async with asyncio.timeout_at(until):
                committed = await self._log.committed(offset)
        except TimeoutError:
            return ErrorCode.coordinator_not_available
        except ApiError as error:
            return self._kind.error_of(error.code)
        return None if committed and not self._is_closed else ErrorCode.not_coordinator

    def close(self) -> None:
        """Answers every request that waits with NOT_COORDINATOR: this broker does not lead the
        partition any more, or must load it again.
        """
        self._is_closed = True
        self.is_active = False
        self.loading.cancel()
        self._timers.cancel_all()
        if self._replying is not None:
            self._replying.cancel()
        while self._uncommitted:
            self._finish(self._uncommitted.popleft(), ErrorCode.not_coordinator)
        if self._shared is not None:
            shared, self._shared = self._shared, None
            for each in shared.steps:
                self._finish(each, ErrorCode.not_coordinator)
            shared.finish(ErrorCode.not_coordinator)
        self._work.clear()
        step = self._step()
        self.shard.unloaded(step)
        self._finish(_UncommittedStep(-1, step.replies, []), None)


def _reply(future: asyncio.Future[Any], result: Any, error: ErrorCode | None) -> None:
    # A client that has gone has cancelled its future.
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(ApiError(error))
        # Retrieved here: a caller that is cancelled at this moment never does.
        future.exception()


class _OrReload:
    """A record in the log that cannot be applied is our own bug: memory and log differ from then
    on, so the partition is closed and loaded again with the next request."""

    __slots__ = ("_partition",)

    def __init__(self, partition: CoordinatorPartition[Any]) -> None:
        self._partition = partition

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            logger.error("%s: a record cannot be applied; loading again", self._partition.name)
            self._partition.close()
