"""Fetch sessions: a client names its partitions once, then only the changes (KIP-227).

Pure: the caller passes the time and new ids. A session is known by its id; each request of it
carries the next epoch. Id 0 with epoch 0 requests a new session; epoch -1 requests none and closes
the named one. A response within a session omits partitions without changes.

When all slots are in use, a new session takes that of the least recently used one if it is idle. A
follower's takes that of a consumer, busy or not: without sessions, replication would send all
partitions again in each fetch. A request that gets no session is answered without one. Unlike
Kafka's (FetchSessionCacheShard), a session with more partitions does not take the slot of a smaller
one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.protocol.versions import FETCH
from ottla.replica.fetch_wait import FetchWait, Key, TopicKey
from ottla.replica.partition_reader import NO_REPLICA, Read

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
IDLE_BEFORE_EVICTION_MS = 120_000
_LAST_EPOCH = 2**31 - 1

_SESSIONS: Final = 7
_ALL_FIELDS: Final = 12
_TOPIC_IDS: Final = 13
"""The first versions of a request with these fields."""
_FIELDS: Final = attrgetter(
    "partition",
    "fetch_offset",
    "partition_max_bytes",
    "current_leader_epoch",
    "last_fetched_epoch",
    "log_start_offset",
)
"""All fields in one call, from version 12 on: small fetches spend much of their time here."""
_CURRENT_LEADER_EPOCH: Final = VersionedField(FETCH, "FetchPartition", "current_leader_epoch", -1)
_LAST_FETCHED_EPOCH: Final = VersionedField(FETCH, "FetchPartition", "last_fetched_epoch", -1)
_LOG_START_OFFSET: Final = VersionedField(FETCH, "FetchPartition", "log_start_offset", -1)


@dataclass(slots=True)
class FetchedPartition:
    """One partition of a fetch: what the client requests, and what was last sent to it."""

    topic: TopicKey
    index: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int = -1
    """The log start of a follower."""
    sent_high_watermark: int = -1
    sent_log_start: int = -1
    name: str | None = None
    """The topic's name, once its id was known: a session keeps it after the topic is deleted."""

    def is_behind(self, log_start: int) -> bool:
        """Whether the log start has moved since it was last sent. DeleteRecords waits until the
        followers' logs start there too (KIP-107), so they should learn of it at once. Kafka's
        followers learn of it when the wait time of their fetch is over."""
        return 0 <= self.sent_log_start < log_start

    def sent(self, read: Read) -> None:
        """Record that the response holds this."""
        if read.error_code is ErrorCode.none:
            self.sent_high_watermark = read.high_watermark
            self.sent_log_start = read.log_start_offset
        else:
            # The response after an error must be sent too, whatever the high watermark is then.
            self.sent_high_watermark = self.sent_log_start = -1


@dataclass(slots=True)
class Fetch:
    """The partitions of one request; `wait` knows which of them to read."""

    session_id: int
    partitions: dict[Key, FetchedPartition]
    incremental: bool
    uses_ids: bool
    wait: FetchWait

    def has_to_send(self, each: FetchedPartition, read: Read) -> bool:
        """Whether the response must hold this partition; if so, records it as sent."""
        if not self.incremental:
            each.sent(read)
            return True
        size_bytes = read.range.size_bytes
        changed = (
            size_bytes > 0
            or read.error_code is not ErrorCode.none
            or read.high_watermark != each.sent_high_watermark
            or read.log_start_offset != each.sent_log_start
            or read.diverging_epoch is not None
            or read.preferred_replica != NO_REPLICA
        )
        if changed:
            each.sent(read)
            if size_bytes:
                self.wait.served((each.topic, each.index))
        return changed


@dataclass(slots=True)
class _Session:
    uses_ids: bool
    partitions: dict[Key, FetchedPartition]
    wait: FetchWait
    next_epoch: int
    used_ms: int
    is_of_follower: bool


@dataclass(slots=True)
class FetchSessions:
    """The broker's sessions, at most `slots` of them, least recently used first."""

    slots: int
    new_id: Callable[[], int]
    _sessions: OrderedDict[int, _Session] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._sessions)

    def topics(self, session_id: int) -> set[TopicKey]:
        """The topics of a session; empty if there is none with this id."""
        session = self._sessions.get(session_id)
        return set() if session is None else {topic for topic, _ in session.partitions}

    def begin(
        self,
        request: Any,
        version: int,
        now_ms: int,
        is_of_follower: Callable[[Any], bool] = lambda request: False,
    ) -> Fetch:
        """The partitions that `request` (a FetchRequest) asks for, with those of its session.

        `is_of_follower` tells whether a replica sent a request: it is asked for new sessions.
        Raises ApiError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, or
        FETCH_SESSION_TOPIC_ID_ERROR where one session mixes names and ids.
        """
        session_id, epoch = NO_SESSION, FINAL_EPOCH
        if version >= _SESSIONS:
            session_id, epoch = request.session_id, request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._end(session_id)
            uses_ids = version >= _TOPIC_IDS
            partitions = {(each.topic, each.index): each for each in _requested(request, version)}
            wait = FetchWait()
            wait.requested(partitions)
            new_id = NO_SESSION
            if epoch == INITIAL_EPOCH:
                new_id = self._create(
                    _Session(uses_ids, partitions, wait, 1, now_ms, is_of_follower(request))
                )
            return Fetch(new_id, partitions, False, uses_ids, wait)
        return self._continue(session_id, epoch, request, version, now_ms)

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.wait.close()

    def _create(self, session: _Session) -> int:
        """The id of the new session; NO_SESSION if there is no slot for it."""
        if len(self._sessions) >= self.slots:
            evicted_id = self._evictable(session)
            if evicted_id == NO_SESSION:
                return NO_SESSION
            self._end(evicted_id)
        session_id = self.new_id()
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self.new_id()
        self._sessions[session_id] = session
        return session_id

    def _evictable(self, new: _Session) -> int:
        """The session whose slot a new one may have; NO_SESSION if there is none."""
        oldest_id = next(iter(self._sessions), NO_SESSION)
        if oldest_id == NO_SESSION:
            return NO_SESSION  # there are no slots at all
        if new.used_ms - self._sessions[oldest_id].used_ms > IDLE_BEFORE_EVICTION_MS:
            return oldest_id
        if not new.is_of_follower:
            return NO_SESSION
        sizes = [
            (len(session.partitions), session_id)
            for session_id, session in self._sessions.items()
            if not session.is_of_follower
        ]
        return min(sizes, default=(0, NO_SESSION))[1]

    def _continue(
        self, session_id: int, epoch: int, request: Any, version: int, now_ms: int
    ) -> Fetch:
        session = self._sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.fetch_session_id_not_found)
        if session.next_epoch != epoch:
            raise ApiError(ErrorCode.invalid_fetch_session_epoch)
        if session.uses_ids != (version >= _TOPIC_IDS):
            raise ApiError(ErrorCode.fetch_session_topic_id_error)
        session.next_epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        session.used_ms = now_ms
        self._sessions.move_to_end(session_id)
        partitions, wait = session.partitions, session.wait
        requested = []
        for each in _requested(request, version):
            key = each.topic, each.index
            known = partitions.get(key)
            if known is not None:
                each.sent_high_watermark = known.sent_high_watermark
                each.sent_log_start = known.sent_log_start
                each.name = known.name
            partitions[key] = each
            requested.append(key)
        wait.requested(requested)
        if request.forgotten_topics_data:
            forgotten = _forgotten(request, session.uses_ids)
            for key in forgotten:
                partitions.pop(key, None)
            wait.forget(forgotten)
        if not partitions:
            self._end(session_id)
            session_id = NO_SESSION
        return Fetch(session_id, partitions, True, session.uses_ids, wait)


def _requested(request: Any, version: int) -> Iterable[FetchedPartition]:
    uses_ids = version >= _TOPIC_IDS
    for topic in request.topics:
        key = topic.topic_id if uses_ids else topic.topic
        for each in topic.partitions:
            if version >= _ALL_FIELDS:
                yield FetchedPartition(key, *_FIELDS(each))
            else:
                yield FetchedPartition(
                    key,
                    each.partition,
                    each.fetch_offset,
                    each.partition_max_bytes,
                    _CURRENT_LEADER_EPOCH(each),
                    _LAST_FETCHED_EPOCH(each),
                    _LOG_START_OFFSET(each),
                )


def _forgotten(request: Any, uses_ids: bool) -> list[Key]:
    return [
        (topic.topic_id if uses_ids else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
