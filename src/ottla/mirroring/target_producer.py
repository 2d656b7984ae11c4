"""The producer of one instance of a mirror: its transaction, and what its failures mean.

The commit of the positions names the member's generation, so that the coordinator refuses the
transaction of an instance that has lost its partitions meanwhile (KIP-447): what it wrote is
aborted as a whole.

After a crash the target has all of a transaction or nothing of it. What was left open is aborted
by the next process of this instance at its start, or by the target after TRANSACTION_TIMEOUT_MS.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from ottla.messaging.librdkafka import LibrdkafkaError, explain, failure, quiet, rejected
from ottla.mirroring.clusters import Side
from ottla.mirroring.group_member import NEEDED, GroupMember, refused
from ottla.mirroring.names import transactional_id_of
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.transaction_age import TAKEN_OVER, TransactionAge, may_have_timed_out

TRANSACTION_TIMEOUT_MS: Final = 30_000
DELIVERED_WITHIN_S: Final = 20.0
"""All records of a transaction, from its begin. One that the target ends after
TRANSACTION_TIMEOUT_MS looks as if another process had taken over. In between it is aborted, after
what is under way, which a slow link may carry for seconds.
"""
CALL_WITHIN_S: Final = 30.0
CLOSE_WITHIN_S: Final = 5.0
FULL_PAUSE_S: Final = 0.1
MAX_POSITIONS: Final = 1_000
"""Of one request. The target writes its offsets, each with its metadata, as one batch, which is
refused above max.message.bytes.
"""
MAX_LOOKS: Final = 20
LOOK_PAUSE_S: Final = 0.1
MAX_RECORD_BYTES: Final = 1_000_000_000
"""librdkafka's own limit: what the target takes, its topics say."""
FOLLOWING: Final = frozenset(
    {KafkaError._STATE, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}
)
"""What librdkafka says of records that come after one that has failed the transaction."""
SILENT: Final = logging.Logger("ottla.mirroring", logging.CRITICAL + 1)
"""librdkafka logs what is fatal at every level, beside the error that it returns."""
MEMBER_LOOK_S: Final = 4.0
"""More than a heartbeat of the group's member and its response take."""
LATE: Final = "the target has not acknowledged the records in time."
SLOW: Final = "the clusters have not answered in time."
ENDED: Final = "the target has ended it, as it was open for too long."


class TransactionFailed(Exception):  # noqa: N818 - an ending that is repeated, not a bug
    """The transaction was aborted; nothing of it is in the target. `reason`: a sentence.

    `unacknowledged`: so many records, of a transaction that took too long.
    """

    def __init__(
        self, reason: str, *, is_too_large: bool = False, unacknowledged: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_too_large = is_too_large
        self.is_late = unacknowledged is not None
        self.unacknowledged = unacknowledged or 0


class TakenOverError(LibrdkafkaError):
    """Another process has this instance's name."""


class TargetProducer:
    """Writes what `member` holds."""

    def __init__(self, spec: MirrorSpec, side: Side, member: GroupMember) -> None:
        """Raises RejectedSettingsError."""
        self._spec = spec
        self._side = side
        self._member = member
        self._problem: Any = None
        self._refusing: str | None = None
        """The topic that the problem is of."""
        self._fatal: Any = None
        self._one_by_one = False
        self.is_open = False
        self._age = TransactionAge()
        self._is_ended = False
        """Whether the target has ended the open transaction, and the producer with it."""
        self._late_s = 0.0
        try:
            self._producer = Producer(self._settings(one_by_one=False))
        except KafkaException as error:
            raise rejected(error, "write to the target") from error

    def _settings(self, *, one_by_one: bool) -> dict[str, Any]:
        return {
            "transactional.id": transactional_id_of(self._spec.name, self._spec.instance),
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "compression.type": "lz4",
            "linger.ms": 5,
            "message.max.bytes": MAX_RECORD_BYTES,
            **({"batch.num.messages": 1} if one_by_one else {}),
            **quiet(self._side.settings),
            "error_cb": self._trouble,
            "logger": SILENT,
        }

    def _trouble(self, error: Any) -> None:
        """librdkafka's report; only what is fatal counts here."""
        if error.fatal() or error.code() in TAKEN_OVER:
            self._fatal = error

    def begin(self) -> None:
        """Aborts what an earlier process of this instance left open. Raises LibrdkafkaError."""
        self._call(lambda: self._producer.init_transactions(CALL_WITHIN_S))

    def renew(self, *, one_by_one: bool) -> None:
        """A new producer; `one_by_one`: each record in a batch of its own. Raises
        LibrdkafkaError.
        """
        self._one_by_one = one_by_one
        self._producer = Producer(self._settings(one_by_one=one_by_one))
        self.begin()

    def check(self) -> None:
        """Raises TakenOverError and TransactionFailed if a transaction is of no use any more."""
        # That of the member says that another process has the name, the producer's may not.
        for fatal in (self._member.fatal, self._fatal):
            if fatal is not None:
                raise self._taken_over(fatal)

    # The transaction

    def open(self) -> None:
        """Begins a transaction, unless one is open. Raises TransactionFailed."""
        if not self.is_open:
            self._guarded(self._producer.begin_transaction)
            self._late_s = time.monotonic() + DELIVERED_WITHIN_S
            self._age.begin()
            self.is_open = True

    def produce(self, topic: str, value: Any, key: Any, **options: Any) -> None:
        """Adds a record; `options` as librdkafka's. Raises TransactionFailed."""
        looks = 0
        while True:
            try:
                self._producer.produce(topic, value, key, **options)
            except BufferError:
                # Bounded: each queued record is delivered or times out.
                self._producer.poll(FULL_PAUSE_S)
            except KafkaException as error:
                reason = error.args[0]
                if reason.code() != KafkaError._UNKNOWN_PARTITION or looks >= MAX_LOOKS:
                    raise self._failed(reason) from error
                # Added since librdkafka has looked; by itself it looks again after minutes.
                looks += 1
                self._look(topic)
            else:
                return

    def _look(self, topic: str) -> None:
        """Lets librdkafka see the topic's partitions. Raises TransactionFailed."""
        try:
            self._producer.list_topics(topic, timeout=CALL_WITHIN_S)
        except KafkaException as error:
            raise self._failed(error.args[0]) from error
        time.sleep(LOOK_PAUSE_S)

    def serve(self) -> None:
        """Takes the results of what was sent."""
        self._producer.poll(0)

    def note_problem(self, error: Any, topic: str) -> None:
        """A record of the topic was not taken. The first problem counts, but less than any if it
        only follows from another.
        """
        if self._problem is None or self._problem.code() in FOLLOWING:
            self._problem, self._refusing = error, topic

    def await_delivered(self, but: int) -> None:
        """Waits until all records but so many are delivered. Raises TransactionFailed."""
        while len(self._producer) > but and self._problem is None:
            if time.monotonic() > self._late_s:
                raise self._late()
            self._producer.poll(FULL_PAUSE_S)

    def flush(self) -> None:
        """Waits until all records are delivered. Raises TransactionFailed."""
        try:
            while self._producer.flush(FULL_PAUSE_S) and time.monotonic() < self._late_s:
                pass
        except KafkaException as error:
            raise self._failed(error.args[0]) from error
        if self._problem is not None:
            raise self._failed(self._problem)
        if len(self._producer):
            raise self._late()

    def _late(self) -> TransactionFailed:
        return TransactionFailed(LATE, unacknowledged=len(self._producer))

    def commit(self, offsets: Sequence[Any]) -> None:
        """Commits the transaction with these offsets of the member's group. Raises
        TransactionFailed and TakenOverError.
        """
        if time.monotonic() > self._late_s:
            # What came before may have waited for a cluster.
            raise TransactionFailed(SLOW)
        metadata = self._member.generation()
        for begin in range(0, len(offsets), MAX_POSITIONS):
            some = offsets[begin : begin + MAX_POSITIONS]
            self._guarded(
                partial(self._producer.send_offsets_to_transaction, some, metadata, CALL_WITHIN_S)
            )
        self._guarded(lambda: self._producer.commit_transaction(CALL_WITHIN_S))
        if self._problem is not None:
            raise self._failed(self._problem)
        self._ended()

    def abort(self) -> None:
        """Nothing of the open transaction will be read. Raises LibrdkafkaError."""
        if self.is_open and not self._is_ended:
            # Suppressed: the target has done it already.
            with suppress(TransactionFailed):
                self._call(lambda: self._producer.abort_transaction(CALL_WITHIN_S))
        is_ended = self._is_ended
        self._ended()
        if is_ended:
            self._come_back()

    def _come_back(self) -> None:
        """A new producer after the target has ended the transaction of the one before. Raises
        TakenOverError if another process has this instance's name.
        """
        until_s = time.monotonic() + MEMBER_LOOK_S
        while time.monotonic() < until_s:
            self._member.poll(FULL_PAUSE_S)
            self.check()
        self.renew(one_by_one=self._one_by_one)

    def _ended(self) -> None:
        self.is_open = self._is_ended = False
        self._problem = self._refusing = None

    # Failures

    def _guarded(self, call: Callable[[], Any]) -> None:
        """A step of a transaction, again while it may succeed. Raises TransactionFailed."""
        deadline = time.monotonic() + CALL_WITHIN_S
        while True:
            try:
                call()
            except KafkaException as error:
                reason = error.args[0]
                if reason.retriable() and time.monotonic() < deadline:
                    self._producer.poll(FULL_PAUSE_S)
                    continue
                raise self._failed(reason) from error
            else:
                return

    def _call(self, call: Callable[[], Any]) -> None:
        """A step outside of a transaction, or its end. Raises LibrdkafkaError and
        TransactionFailed.
        """
        try:
            call()
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() in TAKEN_OVER:
                raise self._taken_over(reason) from error
            if reason.code() in NEEDED:
                raise refused(self._spec, self._side, reason, self._refusing) from error
            raise failure(error, "write to the target") from error

    def _failed(self, reason: Any) -> Exception:
        """The failure to raise: of the transaction, or of this instance."""
        if reason.code() in FOLLOWING and self.is_open:
            reason, self._refusing = self._first_reason(reason), None
        if reason.code() in TAKEN_OVER:
            return self._taken_over(reason)
        if reason.code() in NEEDED:
            return refused(self._spec, self._side, reason, self._refusing)
        is_too_large = reason.code() == KafkaError.MSG_SIZE_TOO_LARGE
        return TransactionFailed(explain(reason), is_too_large=is_too_large)

    def _first_reason(self, reason: Any) -> Any:
        """Why the open transaction has failed: the record that failed it may not be reported."""
        try:
            # Refused as long as one is open, with the reason if that one has failed.
            self._producer.begin_transaction()
        except KafkaException as error:
            first = error.args[0]
            return reason if first.code() in FOLLOWING else first
        return reason

    def _taken_over(self, reason: Any) -> Exception:
        timeout_s = TRANSACTION_TIMEOUT_MS / 1000
        if self.is_open and may_have_timed_out(reason.code(), self._age.seconds(), timeout_s):
            self._is_ended, self._fatal = True, None
            return TransactionFailed(ENDED)
        if reason.code() in TAKEN_OVER:
            return TakenOverError(
                f"another process is instance {self._spec.instance} of mirror {self._spec.name} "
                "now.",
                "To share the work, give each process its own --instance.",
            )
        return LibrdkafkaError(f"cannot write to the target: {explain(reason)}")

    def close(self) -> None:
        """A transaction that cannot be aborted now is aborted by the target."""
        if self.is_open:
            with suppress(KafkaException):
                self._producer.abort_transaction(CLOSE_WITHIN_S)
