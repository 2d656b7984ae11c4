"""A partition that this broker leads, as one share group reads it (KIP-932).

    loading ── read ──> active ──> gone
        └── failed ───────────────> gone

The decider (`ottla.share`) has who has which record; here are its clock, its log and its writes.
One fetch reads at a time, so that no two are handed the same records; one write is under way at a
time, and takes along everything that was said meanwhile. A record's end is answered once it is
written.

When it is gone, because this broker leads no more or the share coordinator has fenced it or has
another state (`share_state_check`), the next request makes another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.config.offset_reset import OffsetReset
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.disk_reads import DiskReads
from ottla.replica.partition import Partition
from ottla.replica.share_history import ShareHistory
from ottla.replica.share_reads import ReadBatches, read_batches
from ottla.replica.share_state_check import ShareStateCheck, Summaries
from ottla.runtime.background import Background
from ottla.runtime.clock import Clock
from ottla.runtime.waiting import Watcher, wake
from ottla.share.acquisition import Acquired, Wish
from ottla.share.share_partition import (
    AckBatch,
    Letter,
    SharePartition,
    ShareSettings,
    StoredState,
    Where,
    Write,
)
from ottla.share.stored import NO_OFFSET, ShareKey

logger = logging.getLogger("ottla.share")

RETRY_S: Final = 30
"""After so long what could not be written is tried again, even if nobody reads any more."""
LATE_S: Final = 0.25
"""A timer that fires so late was held up with what members had sent: they get as much more time,
once."""
BYTES_A_RECORD: Final = 1_024
"""Before anything was read."""
MORE_BYTES: Final = 64 << 10
"""Beyond what so many records took before."""
COORDINATOR_ERRORS: Final = {
    ErrorCode.not_coordinator: ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_not_available: ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress: ErrorCode.coordinator_not_available,
    ErrorCode.group_id_not_found: ErrorCode.group_id_not_found,
    ErrorCode.unknown_topic_or_partition: ErrorCode.unknown_topic_or_partition,
    ErrorCode.fenced_leader_epoch: ErrorCode.not_leader_or_follower,
    ErrorCode.fenced_state_epoch: ErrorCode.not_leader_or_follower,
}
"""What the share coordinator's errors are to a member; others are UNKNOWN_SERVER_ERROR
(SharePartition.fetchPersisterError)."""
FENCED: Final = frozenset(
    (
        ErrorCode.not_leader_or_follower,
        ErrorCode.group_id_not_found,
        ErrorCode.unknown_topic_or_partition,
    )
)


class GroupTerms(NamedTuple):
    """What a group's settings say of its records."""

    records: ShareSettings
    committed_only: bool
    reset: OffsetReset
    dead_letters: str = ""
    """The topic of dead letters; empty: the group has none."""


class Persister(Summaries, Protocol):
    """As `ottla.coordinator.share_persister.SharePersister`. All raise ApiError."""

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredState: ...

    async def write(
        self, key: ShareKey, state_epoch: int, leader_epoch: int, write: Write
    ) -> None: ...


class DeadLetterWriter(Protocol):
    """As `ottla.cluster.dead_letters.DeadLetters`."""

    written: int
    given_up: int

    async def write(
        self,
        partition: Partition,
        group_id: str,
        letters: Sequence[Letter],
        is_wanted: Callable[[], bool],
    ) -> int | None: ...


class Surroundings(NamedTuple):
    """What every shared partition of this broker uses."""

    persister: Persister
    clock: Clock
    reads: DiskReads
    background: Background
    terms: Callable[[str], GroupTerms]
    """Of a group, as they are now."""
    first_offset: Callable[[Partition, OffsetReset], Awaitable[int]]
    """Where a group begins that has no offset yet; raises ApiError."""
    dead_letters: DeadLetterWriter
    history: ShareHistory


class Handed(NamedTuple):
    """What a member gets of a partition."""

    acquired: Sequence[Acquired]
    data: memoryview


NOTHING: Final = Handed((), memoryview(b""))


class SharedPartition:
    """For the event loop's thread only."""

    def __init__(
        self,
        key: ShareKey,
        partition: Partition,
        around: Surroundings,
        unused: Callable[[SharedPartition], None] = lambda shared: None,
    ) -> None:
        """Begins to load the state. `unused` is called whenever it may have become idle or
        gone: its owner may forget it then."""
        self.key = key
        self._unused = unused
        self.partition = partition
        self.waiters: dict[Watcher, None] | None = None
        """Fetches of the group, woken when records may be available."""
        self.is_gone = False
        self._around = around
        self._leadership = partition.leadership
        self._leader_epoch = partition.leader_epoch
        self._shares: SharePartition | None = None
        self.failure: ApiError | None = None
        """Why it could not be loaded."""
        self.is_told = False
        """A member knows that."""
        self._is_reading = False
        self._bytes_a_record = float(BYTES_A_RECORD)
        self._awaiting_write: list[asyncio.Future[None]] = []
        """Who waits for the next write."""
        self._is_writing = False
        self._is_writing_letters = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._is_grace = False
        """The timer was late: what is over then ends, even if it is late again."""
        self._retry: asyncio.TimerHandle | None = None
        self._check = ShareStateCheck(
            key, self._leader_epoch, around.persister, around.background, self.end
        )
        around.background.spawn(self._load())

    @property
    def _terms(self) -> GroupTerms:
        return self._around.terms(self.key.group_id)

    @property
    def is_current(self) -> bool:
        """Whether this broker still leads as it did at the load."""
        return not self.is_gone and self.partition.leadership == self._leadership

    @property
    def is_loading(self) -> bool:
        return self._shares is None and self.failure is None and not self.is_gone

    @property
    def is_idle(self) -> bool:
        """Nobody has records, and everything is written, dead letters too."""
        shares = self._shares
        return shares is None or (
            not self._is_writing
            and not shares.has_unwritten
            and shares.next_lock_end_ms() is None
            and not shares.has_letters
        )

    async def _load(self) -> None:
        try:
            state = await self._around.persister.read(self.key, self._leader_epoch)
            self._check.read(state.state_epoch, state.start_offset)
            is_start_new = state.start_offset == NO_OFFSET
            if is_start_new:
                first = await self._around.first_offset(self.partition, self._terms.reset)
                state = state._replace(start_offset=first)
            self._shares = SharePartition(state, is_start_new=is_start_new)
        except ApiError as error:
            code = COORDINATOR_ERRORS.get(error.code, ErrorCode.unknown_server_error)
            self.failure = ApiError(code, error.message)
            logger.info("%s: the state cannot be read: %s", self._name, error)
        except ValueError as error:
            self.failure = ApiError(ErrorCode.unknown_server_error, str(error))
            logger.error("%s: the state is damaged: %s", self._name, error)
        if self.failure is not None:
            self.end()
        elif self._shares is not None:
            if self._shares.has_unwritten:
                self._write_soon()
            self._write_letters_soon(self._shares)
        wake(self)
        self._unused(self)

    @property
    def _name(self) -> str:
        return f"group {self.key.group_id} on {self.partition.topic}-{self.partition.index}"

    def end(self) -> None:
        """It is used no more; what waits for it is answered with NOT_LEADER_OR_FOLLOWER."""
        if self.is_gone:
            return
        self.is_gone = True
        if self._timer is not None:
            self._timer.cancel()
        if self._retry is not None:
            self._retry.cancel()
        self._answer(self._awaiting_write, ApiError(ErrorCode.not_leader_or_follower))
        self._awaiting_write = []
        wake(self)

    # For journeys.

    def _keep_notes(self, shares: SharePartition) -> None:
        if notes := shares.take_notes():
            self._around.history.add(self.key, notes, self._around.clock.now_ms())

    def where(self, offset: int) -> tuple[Where, int, int] | None:
        """Where one record is, and the group's start and next offset; None while that is loading.
        The time of a lock is one of the wall clock."""
        shares = self._shares
        if shares is None or not self.is_current:
            return None
        where = shares.where(offset)
        if where.lock_until_ms is not None:
            clock = self._around.clock
            left_ms = where.lock_until_ms - clock.monotonic_ms()
            where = where._replace(lock_until_ms=clock.now_ms() + left_ms)
        return where, shares.start_offset, shares.next_offset

    # Members get records.

    @property
    def may_hand_out(self) -> bool:
        """Whether a fetch may try now: nobody else reads, and not too many records are locked."""
        shares = self._shares
        return (
            shares is not None
            and self.is_current
            and not self._is_reading
            and shares.can_acquire(self._terms.records)
        )

    @property
    def likely_bytes(self) -> int:
        """About how much the log has for a member; 0 if it has nothing.

        Raises ApiError as `PartitionReader.end_for`.
        """
        shares = self._shares
        if shares is None:
            return 0
        first = max(shares.next_fetch_offset(), self.partition.log.start_offset)
        left = self.partition.reader.end_for(self._terms.committed_only) - first
        return 0 if left <= 0 else max(1, int(left * self._bytes_a_record))

    @property
    def progress(self) -> tuple[int, int]:
        """Changes whenever a read has led to something."""
        shares = self._shares
        return (0, 0) if shares is None else (shares.start_offset, shares.next_fetch_offset())

    def check_state(self) -> None:
        """Somebody waits here for records: asks, not often, whether the state is still stored."""
        shares = self._shares
        if (
            shares is not None
            and self._check.is_due
            and self.is_current
            and not self._is_writing
            and not shares.has_unwritten
        ):
            self._check.begin()

    async def hand_out(self, wish: Wish, max_bytes: int, is_wanted: Callable[[], bool]) -> Handed:
        """Records for a member, maybe none; none if it is gone by the time that they are read.

        Raises ApiError as `read_batches`.
        """
        shares = self._shares
        assert shares is not None
        self._is_reading = True
        try:
            self.partition.check_leads()
            shares.move_start(self.partition.log.start_offset)
            offset = shares.next_fetch_offset()
            terms = self._terms
            wanted = min(wish.max_records, terms.records.max_in_flight)
            likely_bytes = int(wanted * self._bytes_a_record) + MORE_BYTES
            read = await read_batches(
                self.partition,
                offset,
                wanted + shares.in_flight_count,
                min(max_bytes, likely_bytes),
                committed_only=terms.committed_only,
                reads=self._around.reads,
            )
            if not read.batches or not self.is_current or not is_wanted():
                return NOTHING
            self._learn(read)
            now_ms = self._around.clock.monotonic_ms()
            acquired = shares.acquire(
                wish, offset, read.batches, terms.records, now_ms, read.aborted
            )
            self._keep_notes(shares)
        finally:
            self._is_reading = False
            if self.waiters:
                wake(self)
        self._arm(terms.records.lock_ms)
        if shares.has_unwritten:
            self._write_soon()
        if not acquired:
            return NOTHING
        return Handed(acquired, read.of(acquired[0].first, acquired[-1].last))

    def _learn(self, read: ReadBatches) -> None:
        """How large records are: so much is read for so many."""
        count = read.batches[-1].last - read.batches[0].first + 1
        self._bytes_a_record = read.ends[-1] / count

    # Members say what became of them.

    def acknowledge(self, member: str, batches: Sequence[AckBatch]) -> asyncio.Future[None] | None:
        """The end of deliveries, or longer locks; what is returned is done once that is written,
        None if nothing is to be written.

        Raises ApiError: INVALID_REQUEST, INVALID_RECORD_STATE, NOT_LEADER_OR_FOLLOWER.
        """
        shares = self._shares
        if shares is None or not self.is_current:
            raise ApiError(ErrorCode.not_leader_or_follower)
        shares.move_start(self.partition.log.start_offset)
        records = self._terms.records
        shares.acknowledge(member, batches, records, self._around.clock.monotonic_ms())
        self._keep_notes(shares)
        self._arm(records.lock_ms)
        if not shares.has_unwritten:
            return None
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaiting_write.append(written)
        self._write_soon()
        return written

    @property
    def run_count(self) -> int:
        """How many runs of records are in flight: what a release looks at."""
        return 0 if self._shares is None else len(self._shares.runs)

    def release(self, member: str) -> None:
        """A member's session has ended: others get what it had."""
        if self._shares is not None and self.is_current:
            if self._shares.release(member, self._terms.records):
                self._keep_notes(self._shares)
                self._write_soon()
            wake(self)

    # Time.

    def _arm(self, delay_ms: int) -> None:
        """A lock ends after this delay, or others end before."""
        loop = asyncio.get_running_loop()
        due = loop.time() + delay_ms / 1000
        if self._timer is not None:
            if self._is_grace or self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer_due = due
        self._timer = loop.call_at(due, self._expire)

    def _expire(self) -> None:
        self._timer = None
        shares = self._shares
        if shares is None or not self.is_current:
            self._unused(self)
            return
        now_ms = self._around.clock.monotonic_ms()
        is_late = asyncio.get_running_loop().time() - self._timer_due > LATE_S
        if is_late and not self._is_grace:
            self._is_grace = True
            self._arm(int(LATE_S * 1000))
            return
        self._is_grace = False
        if shares.expire_locks(self._terms.records, now_ms):
            self._keep_notes(shares)
            self._write_soon()
            wake(self)
        self._arm_for_next()
        self._unused(self)

    def _arm_for_next(self) -> None:
        assert self._shares is not None
        end_ms = self._shares.next_lock_end_ms()
        if end_ms is not None:
            self._arm(max(1, end_ms - self._around.clock.monotonic_ms()))

    # Writing.

    def _write_soon(self) -> None:
        if not self._is_writing:
            self._is_writing = True
            self._around.background.spawn(self._write())

    async def _write(self) -> None:
        """Writes until nothing is left, or until the coordinator refuses."""
        shares = self._shares
        assert shares is not None
        try:
            while shares.has_unwritten and not self.is_gone:
                waiting, self._awaiting_write = self._awaiting_write, []
                error = await self._write_once(shares)
                self._answer(waiting, error)
                if error is not None:
                    if error.code in FENCED:
                        self.end()
                    if not self._awaiting_write:
                        break
            self._answer(self._awaiting_write, None)
            self._awaiting_write = []
        finally:
            self._is_writing = False
        if shares.has_unwritten and not self.is_gone:
            self._retry_later()
        self._unused(self)

    def _retry_later(self) -> None:
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self._write_again)

    def _write_again(self) -> None:
        self._retry = None
        if self._shares is not None and self._shares.has_unwritten and self.is_current:
            self._write_soon()
        else:
            self._unused(self)

    async def _write_once(self, shares: SharePartition) -> ApiError | None:
        write = shares.begin_write()
        self._check.writing()
        error = None
        try:
            await self._around.persister.write(
                self.key, shares.state_epoch, self._leader_epoch, write
            )
        except ApiError as refused:
            code = COORDINATOR_ERRORS.get(refused.code, ErrorCode.unknown_server_error)
            error = ApiError(code, refused.message)
            logger.info("%s: the state is not written: %s", self._name, refused)
            if refused.code is ErrorCode.invalid_request:
                # The state is gone: the group or the topic was deleted.
                self.end()
        if error is None:
            self._check.written(write)
        shares.end_write(is_written=error is None)
        self._keep_notes(shares)
        if not self.is_gone:
            self._arm_for_next()
            self._write_letters_soon(shares)
            wake(self)
        return error

    # Dead letters (KIP-1191).

    def _write_letters_soon(self, shares: SharePartition) -> None:
        if shares.has_letters and not self._is_writing_letters:
            self._is_writing_letters = True
            self._around.background.spawn(self._write_letters(shares))

    async def _write_letters(self, shares: SharePartition) -> None:
        """Writes dead letters until none is to be written, or until another broker leads, which
        writes them then. The records are archived also where that fails."""
        try:
            while self.is_current and (letters := shares.take_letters(self._terms.records)):
                topic = self._terms.dead_letters
                given_up_from = await self._around.dead_letters.write(
                    self.partition, self.key.group_id, letters, lambda: self.is_current
                )
                if self.is_current:
                    for each in letters:
                        shares.end_letter(each, topic, given_up_from)
                    self._keep_notes(shares)
                    self._write_soon()
        finally:
            self._is_writing_letters = False
        self._unused(self)

    @staticmethod
    def _answer(said: Sequence[asyncio.Future[None]], error: ApiError | None) -> None:
        for each in said:
            if each.done():
                continue  # its client has gone
            if error is None:
                each.set_result(None)
            else:
                each.set_exception(error)
                each.exception()  # retrieved: its caller may be cancelled at this moment
