"""A member of a share group (KIP-932): it reads whatever partitions it is assigned, beside others.

It has a share session with each leader, and says of each record that it is done, to be given to
others, or bad; it keeps some for longer (KIP-1222), and forgets some, whose locks end. What it says
goes with the next fetch, or in a request of its own. After a request without an answer it does not
know what became of the session, and begins another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Final
from uuid import UUID

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.share.record_state import AckType
from simulation.clients import Observer, batches_of
from simulation.connection import RETRY_S, Connections, NoAnswerError, RefusedError
from simulation.consumers import COORDINATOR_MOVED, check
from simulation.pace import Pace
from simulation.share_ledger import Ack, Delivery, ShareLedger

SHARE_GROUP: Final = "shares"
HEARTBEAT: Final = 76
SHARE_FETCH: Final = 78
SHARE_ACKNOWLEDGE: Final = 79
LEAVES: Final = -1
FINAL_EPOCH: Final = -1
POLL_MS: Final = 200
BEAT_S: Final = 0.3
"""In a full run."""
MIN_BEAT_S: Final = 0.1
MAX_RECORDS: Final = 12
LEAVES_SHARE: Final = 0.01
CHOICES: Final = (
    (AckType.ACCEPT,) * 12 + (AckType.RELEASE,) * 3 + (AckType.REJECT,) + (AckType.RENEW,) * 2
)
FORGOTTEN: Final = 0.06
KEPT: Final = 0.2
"""Of the records, for the next time."""
BAD_EVERY: Final = 12
"""One of so many offsets is a record that no member can work on: it is given back each time, until
it was delivered too often.
"""
NOT_TAKEN: Final = frozenset({ErrorCode.invalid_record_state, ErrorCode.invalid_request})
"""What was said is certainly not stored."""
SESSION_GONE: Final = frozenset(
    {ErrorCode.share_session_not_found, ErrorCode.invalid_share_session_epoch}
)


class Session:
    """With one broker."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.epoch = 0
        """Of the next request."""
        self.partitions: set[int] = set()
        """Those that the broker knows of."""
        self.held: dict[tuple[int, int], Delivery] = {}
        """By partition and offset."""

    def went_on(self) -> None:
        self.epoch += 1


class ShareMember:
    """One consumer."""

    def __init__(
        self,
        number: int,
        topic: str,
        addresses: Mapping[int, tuple[str, int]],
        ledger: ShareLedger,
        now_ms: Callable[[], int],
        random: Random,
        observer: Observer,
        pace: Pace,
        new_session: Callable[[], int],
    ) -> None:
        self.number = number
        self.stays = False
        """Whether it accepts all that it gets, and no longer leaves the group by itself."""
        self.epoch = -1
        self.member_id = ""
        self._topic = topic
        self._topic_id: UUID | None = None
        self._connections = Connections(f"share-member-{number}", addresses)
        self._ledger = ledger
        self._now_ms = now_ms
        self._random = random
        self._observer = observer
        self._beat_s = max(MIN_BEAT_S, pace.s(BEAT_S))
        self._new_session = new_session
        self._assigned: tuple[int, ...] = ()
        self._says_all = True
        """After a request without an answer, which may have had an assignment: it is said once only
        to a member that does not say all (as Kafka's client does after a failed heartbeat)."""
        self._sessions: dict[int, Session] = {}
        """By broker."""

    async def run(self) -> None:
        """Run as long as the process lives."""
        while True:
            try:
                await self._take_part()
            except NoAnswerError:
                self._connections.forget_coordinator(SHARE_GROUP)
            except RefusedError as error:
                if error.code in COORDINATOR_MOVED:
                    self._connections.forget_coordinator(SHARE_GROUP)
                else:
                    self.member_id = ""
            await asyncio.sleep(RETRY_S)

    async def _take_part(self) -> None:
        if not self.member_id:
            self._forget_all()
            self.member_id = f"{self._random.getrandbits(64):x}"
            self.epoch = 0
            self._assigned = ()
        beat_at = 0.0
        while True:
            now = asyncio.get_running_loop().time()
            if now >= beat_at:
                beat_at = now + self._beat_s
                await self._beat()
            await self._poll()
            if not self.stays and self._random.random() < LEAVES_SHARE:
                await self._leave()
                return
            await asyncio.sleep(self._random.random() * 0.1)

    # The group.

    async def _beat(self) -> None:
        says_all, self._says_all = self._says_all, True
        answer = await self._ask_coordinator(self.epoch, says_all=says_all)
        self._says_all = False
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            partitions: list[int] = []
            for topic in answer.assignment.topic_partitions:
                self._topic_id = topic.topic_id
                partitions += topic.partitions
            self._assigned = tuple(sorted(partitions))

    async def _ask_coordinator(self, epoch: int, *, says_all: bool = False) -> Any:
        build = messages_of(HEARTBEAT, 1, "request")
        request = build.ShareGroupHeartbeatRequest(
            group_id=SHARE_GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            rack_id=None,
            subscribed_topic_names=(self._topic,) if says_all or epoch == 0 else None,
        )
        broker = await self._connections.coordinator(SHARE_GROUP)
        answer = await self._connections.ask(broker, request, 1_500)
        check(ErrorCode(answer.error_code))
        return answer

    async def _leave(self) -> None:
        for broker in list(self._sessions):
            if self._random.random() < 0.5:
                await self._acknowledge(broker, ends=True)
        left, self.member_id = self.member_id, ""
        self._forget_all()
        self.member_id, self.epoch = left, LEAVES
        try:
            await self._ask_coordinator(LEAVES)
        finally:
            self.member_id = ""

    # Records.

    async def _poll(self) -> None:
        by_leader: dict[int, list[int]] = {}
        for partition in self._assigned:
            try:
                leader = await self._connections.leader(self._topic, partition)
            except NoAnswerError:
                continue
            by_leader.setdefault(leader, []).append(partition)
        for broker in list(self._sessions.keys() | by_leader.keys()):
            if self._random.random() < 0.4 and broker in self._sessions:
                await self._acknowledge(broker)
            if broker in by_leader or broker in self._sessions:
                await self._fetch(broker, by_leader.get(broker, []))

    async def _fetch(self, broker: int, partitions: list[int]) -> None:
        build = messages_of(SHARE_FETCH, 2, "request")
        session = self._sessions.get(broker)
        if session is None:
            if not partitions:
                return
            session = self._sessions[broker] = Session(self._new_session())
        acks = [] if session.epoch == 0 else self._decide(session, may_renew=False)
        batches = self._batches(build, acks)
        named = [each for each in partitions if each not in session.partitions]
        gone = [each for each in sorted(session.partitions) if each not in partitions]
        wanted = tuple(
            build.FetchPartition(
                partition_index=each, acknowledgement_batches=tuple(batches.get(each, ()))
            )
            for each in sorted({*named, *batches})
        )
        request = build.ShareFetchRequest(
            group_id=SHARE_GROUP,
            member_id=self.member_id,
            share_session_epoch=session.epoch,
            max_wait=POLL_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=self._random.randrange(1, MAX_RECORDS),
            batch_size=self._random.randrange(1, MAX_RECORDS),
            share_acquire_mode=self._random.randrange(2),
            is_renew_ack=False,
            topics=(build.FetchTopic(topic_id=self._topic_id, partitions=wanted),)
            if wanted
            else (),
            forgotten_topics_data=(
                build.ForgottenTopic(topic_id=self._topic_id, partitions=tuple(gone)),
            )
            if gone
            else (),
        )
        sent_ms = self._now_ms()
        answer = await self._ask_leader(broker, session, request)
        if answer is None:
            return
        session.partitions |= set(partitions)
        session.partitions -= set(gone)
        refused: dict[int, ErrorCode] = {}
        for topic in answer.responses:
            for each in topic.partitions:
                refused[each.partition_index] = ErrorCode(each.acknowledge_error_code)
                code = ErrorCode(each.error_code)
                if code is not ErrorCode.none:
                    self._connections.forget_leader(self._topic, each.partition_index)
                self._take(broker, session, each, sent_ms)
        self._answered(acks, refused)

    def _take(self, broker: int, session: Session, part: Any, sent_ms: int) -> None:
        now_ms = self._now_ms()
        offsets = set()
        for header, records in batches_of(bytes(part.records or b"")):
            self._observer.read(
                self._topic,
                part.partition_index,
                header.base_offset,
                header.next_offset,
                header.crc,
            )
            offsets |= {record.offset for record in records}
        for acquired in part.acquired_records:
            for offset in range(acquired.first_offset, acquired.last_offset + 1):
                assert offset in offsets, f"offset {offset} was acquired and not sent"
                delivery = Delivery(
                    self.number,
                    session.number,
                    broker,
                    part.partition_index,
                    offset,
                    acquired.delivery_count,
                    sent_ms,
                    now_ms,
                )
                self._ledger.delivered(delivery)
                session.held[part.partition_index, offset] = delivery

    async def _acknowledge(self, broker: int, *, ends: bool = False) -> None:
        session = self._sessions[broker]
        if session.epoch == 0:
            return
        build = messages_of(SHARE_ACKNOWLEDGE, 2, "request")
        renews = self._random.random() < 0.5
        acks = self._decide(session, may_renew=renews)
        if not acks and not ends:
            return
        topics = (
            build.AcknowledgeTopic(
                topic_id=self._topic_id,
                partitions=tuple(
                    build.AcknowledgePartition(
                        partition_index=partition, acknowledgement_batches=tuple(batches)
                    )
                    for partition, batches in self._batches(build, acks).items()
                ),
            ),
        )
        request = build.ShareAcknowledgeRequest(
            group_id=SHARE_GROUP,
            member_id=self.member_id,
            share_session_epoch=FINAL_EPOCH if ends else session.epoch,
            is_renew_ack=renews,
            topics=topics if acks else (),
        )
        answer = await self._ask_leader(broker, session, request)
        if answer is None:
            return
        refused = {
            each.partition_index: ErrorCode(each.error_code)
            for topic in answer.responses
            for each in topic.partitions
        }
        self._answered(acks, refused)
        if ends:
            self._forget(broker)

    async def _ask_leader(self, broker: int, session: Session, request: Any) -> Any:
        """The answer; None if the session is not what it was, and another one begins."""
        sent_ms = self._now_ms()
        try:
            answer = await self._connections.ask(broker, request, 1_500)
        except NoAnswerError:
            self._forget(broker)
            for partition in self._assigned:
                self._connections.forget_leader(self._topic, partition)
            return None
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.none:
            # Requests of one session follow each other, so that only its end is a reason.
            assert code in SESSION_GONE, f"a share session is refused: {code.name}"
            self._forget(broker)
            return None
        self._ledger.session_went_on(session.number, sent_ms)
        session.went_on()
        return answer

    def _forget(self, broker: int) -> None:
        session = self._sessions.pop(broker, None)
        if session is not None:
            self._ledger.session_ended(session.number)

    def _forget_all(self) -> None:
        for broker in list(self._sessions):
            self._forget(broker)

    # What it says.

    def _decide(self, session: Session, *, may_renew: bool) -> list[Ack]:
        """Of which records it says something now, in order."""
        found: list[Ack] = []
        now_ms = self._now_ms()
        for key in sorted(session.held):
            delivery = session.held[key]
            kind = AckType.ACCEPT
            if not self.stays:
                if self._random.random() < FORGOTTEN:
                    del session.held[key]
                    continue
                if self._random.random() < KEPT:
                    continue
                kind = self._random.choice(CHOICES)
                if delivery.offset % BAD_EVERY == 0:
                    kind = AckType.RELEASE
            if kind is AckType.RENEW:
                if not may_renew:
                    continue
            else:
                del session.held[key]
            ack = Ack(delivery, kind, now_ms)
            self._ledger.says(ack)
            found.append(ack)
        return found

    def _batches(self, build: Any, acks: Iterable[Ack]) -> dict[int, list[Any]]:
        """Neighbours in one batch, with one type for all or one for each."""
        runs: dict[int, list[list[Ack]]] = {}
        for ack in acks:
            of = runs.setdefault(ack.delivery.partition, [])
            if of and of[-1][-1].delivery.offset + 1 == ack.delivery.offset:
                of[-1].append(ack)
            else:
                of.append([ack])
        found: dict[int, list[Any]] = {}
        for partition, each in runs.items():
            for run in each:
                types = [int(ack.type) for ack in run]
                if len(set(types)) == 1:
                    types = types[:1]
                found.setdefault(partition, []).append(
                    build.AcknowledgementBatch(
                        first_offset=run[0].delivery.offset,
                        last_offset=run[-1].delivery.offset,
                        acknowledge_types=tuple(types),
                    )
                )
        return found

    def _answered(self, acks: Iterable[Ack], codes: Mapping[int, ErrorCode]) -> None:
        now_ms = self._now_ms()
        for ack in acks:
            code = codes[ack.delivery.partition]
            if code is ErrorCode.none:
                self._ledger.took(ack, now_ms)
            elif code in NOT_TAKEN:
                self._ledger.refused(ack)
