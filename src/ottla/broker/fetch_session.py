"""Fetch sessions: a consumer names its partitions once, then only what changes (KIP-227).

Pure: the caller passes the time and new ids. A session is known by its id; each request of it
carries the next epoch. Id 0 with epoch 0 asks for a new session, epoch -1 for none (it ends the one
named). A response within a session leaves out partitions of which there is nothing new.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.broker.fetch_watch import FetchWatch, Key, TopicKey
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.protocol.versions import FETCH

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
IDLE_BEFORE_EVICTION_MS = 120_000
_LAST_EPOCH = 2**31 - 1

_SESSION_ID: Final = VersionedField(FETCH, "FetchRequest", "session_id", NO_SESSION)
_SESSION_EPOCH: Final = VersionedField(FETCH, "FetchRequest", "session_epoch", FINAL_EPOCH)
_CURRENT_LEADER_EPOCH: Final = VersionedField(FETCH, "FetchPartition", "current_leader_epoch", -1)
_LAST_FETCHED_EPOCH: Final = VersionedField(FETCH, "FetchPartition", "last_fetched_epoch", -1)
_LOG_START_OFFSET: Final = VersionedField(FETCH, "FetchPartition", "log_start_offset", -1)
_FORGOTTEN_TOPICS_DATA: Final = VersionedField[tuple[Any, ...]](
    FETCH, "FetchRequest", "forgotten_topics_data", ()
)


@dataclass(slots=True)
class FetchedPartition:
    """One partition of a fetch: what the client asked, and what it was last told."""

    topic: TopicKey
    index: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int = -1
    """A follower's own."""
    told_high_watermark: int = -1
    told_log_start: int = -1
    name: str | None = None
    """The topic's, once its id was known: a session remembers it when the topic is gone."""

    def is_behind(self, log_start: int) -> bool:
        """Whether the log's start has moved since it was last told: who deletes records waits until
        the followers begin there too (KIP-107), and no longer than need be. Kafka's followers hear
        of it when their fetch has waited its time."""
        return 0 <= self.told_log_start < log_start


@dataclass(slots=True)
class Fetch:
    """The partitions that one request asks for; `watch` knows which are to be looked at."""

    session_id: int
    partitions: dict[Key, FetchedPartition]
    incremental: bool
    uses_ids: bool
    watch: FetchWatch

    def is_news(self, each: FetchedPartition, answer: Any) -> bool:
        """Whether the answer for one partition belongs into the response; remembers it if so."""
        if not self.incremental:
            _remember(each, answer)
            return True
        news = (
            answer.error_code is not ErrorCode.none
            or bool(answer.size_bytes)
            or answer.high_watermark != each.told_high_watermark
            or answer.log_start_offset != each.told_log_start
            or answer.diverging_epoch is not None
            or answer.preferred_replica >= 0
        )
        if news:
            _remember(each, answer)
            # Served partitions move to the end, so that a small max_bytes starves none.
            if answer.size_bytes:
                self.watch.served((each.topic, each.index))
        return news


def _remember(each: FetchedPartition, answer: Any) -> None:
    if answer.error_code is ErrorCode.none:
        each.told_high_watermark = answer.high_watermark
        each.told_log_start = answer.log_start_offset
    else:
        # Tells the end of the error too, whatever the watermark is then.
        each.told_high_watermark = each.told_log_start = -1


@dataclass(slots=True)
class _Session:
    uses_ids: bool
    partitions: dict[Key, FetchedPartition]
    watch: FetchWatch
    next_epoch: int
    used_ms: int


@dataclass(slots=True)
class FetchSessions:
    """The broker's sessions, at most `slots` of them, the least recently used first."""

    slots: int
    new_id: Callable[[], int]
    _sessions: OrderedDict[int, _Session] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: Any, version: int, now_ms: int) -> Fetch:
        """What `request` (a FetchRequest) asks for, all told.

        Raises ApiError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, or
        FETCH_SESSION_TOPIC_ID_ERROR where one session mixes names and ids.
        """
        uses_ids = version >= 13
        session_id = _SESSION_ID(request)
        epoch = _SESSION_EPOCH(request)
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._end(session_id)
            partitions = {(each.topic, each.index): each for each in _asked(request, uses_ids)}
            watch = FetchWatch()
            watch.asked(partitions)
            new_id = NO_SESSION
            if epoch == INITIAL_EPOCH:
                new_id = self._create(uses_ids, partitions, watch, now_ms)
            return Fetch(new_id, partitions, incremental=False, uses_ids=uses_ids, watch=watch)
        return self._continue(session_id, epoch, request, uses_ids, now_ms)

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.watch.close()

    def _create(
        self,
        uses_ids: bool,
        partitions: dict[Key, FetchedPartition],
        watch: FetchWatch,
        now_ms: int,
    ) -> int:
        if len(self._sessions) >= self.slots:
            oldest_id, oldest = next(iter(self._sessions.items()))
            if now_ms - oldest.used_ms < IDLE_BEFORE_EVICTION_MS:
                return NO_SESSION
            self._end(oldest_id)
        session_id = self.new_id()
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self.new_id()
        self._sessions[session_id] = _Session(uses_ids, partitions, watch, 1, now_ms)
        return session_id

    def _continue(
        self, session_id: int, epoch: int, request: Any, uses_ids: bool, now_ms: int
    ) -> Fetch:
        session = self._sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.fetch_session_id_not_found)
        if session.next_epoch != epoch:
            raise ApiError(ErrorCode.invalid_fetch_session_epoch)
        if session.uses_ids != uses_ids:
            raise ApiError(ErrorCode.fetch_session_topic_id_error)
        session.next_epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        session.used_ms = now_ms
        self._sessions.move_to_end(session_id)
        for each in _asked(request, uses_ids):
            known = session.partitions.get((each.topic, each.index))
            if known is not None:
                each.told_high_watermark = known.told_high_watermark
                each.told_log_start = known.told_log_start
                each.name = known.name
            session.partitions[each.topic, each.index] = each
            session.watch.asked([(each.topic, each.index)])
        for key in _forgotten(request, uses_ids):
            session.partitions.pop(key, None)
            session.watch.forget([key])
        if not session.partitions:
            self._end(session_id)
            session_id = NO_SESSION
        return Fetch(
            session_id,
            session.partitions,
            incremental=True,
            uses_ids=uses_ids,
            watch=session.watch,
        )


def _asked(request: Any, uses_ids: bool) -> Iterable[FetchedPartition]:
    for topic in request.topics:
        key = topic.topic_id if uses_ids else topic.topic
        for each in topic.partitions:
            yield FetchedPartition(
                topic=key,
                index=each.partition,
                fetch_offset=each.fetch_offset,
                max_bytes=each.partition_max_bytes,
                leader_epoch=_CURRENT_LEADER_EPOCH(each),
                last_fetched_epoch=_LAST_FETCHED_EPOCH(each),
                log_start_offset=_LOG_START_OFFSET(each),
            )


def _forgotten(request: Any, uses_ids: bool) -> Iterable[Key]:
    for topic in _FORGOTTEN_TOPICS_DATA(request):
        key = topic.topic_id if uses_ids else topic.topic
        for index in topic.partitions:
            yield key, index
