"""Fetch sessions: a client names its partitions once, then only the changes (KIP-227).

Pure: the caller passes the time and new ids. A session is known by its id; each request of it
carries the next epoch. Id 0 with epoch 0 requests a new session; epoch -1 requests none and closes
the named one. A response within a session omits partitions without changes.

When all slots are in use, a new session takes that of the least recently used one if it is idle. A
follower's takes that of a consumer, busy or not: without sessions, replication would send all
partitions again in each fetch. A request that gets no session is answered without one. Unlike
Kafka's (FetchSessionCacheShard), a session with more partitions does not take the slot of a smaller
one.

What a session keeps of a partition is memory, and Kafka limits only the number of sessions. Here
all sessions together keep at most MAX_PARTITIONS. A request beyond it is treated like one without a
slot; but a follower takes the largest sessions of consumers.

A request may name 200,000 partitions, so its work is cut into slices (`runtime.slices`). Between
two slices another connection may use the session: its request is refused until this one sleeps or
is answered (Kafka lets it wait for the session's lock). While this one sleeps, the other's is
served, and this one ends with INVALID_FETCH_SESSION_EPOCH (IncrementalFetchContext).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Final

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.versioned_field import VersionedField
from ottla.protocol.versions import FETCH
from ottla.replica.fetch_wait import FetchWait, Key, TopicKey
from ottla.replica.partition_reader import NO_REPLICA, Read
from ottla.runtime.slices import SLICE

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
IDLE_BEFORE_EVICTION_MS = 120_000
MAX_PARTITIONS: Final = 250_000
"""Of all sessions together: about 120 MB. On a broker with 100,000 partitions and three replicas of
each, the followers' sessions have 67,000."""
_LAST_EPOCH = 2**31 - 1

SESSIONS: Final = 7
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
class _Session:
    uses_ids: bool
    partitions: dict[Key, FetchedPartition]
    wait: FetchWait
    next_epoch: int
    used_ms: int
    is_of_follower: bool
    counted: int = 0
    """How many partitions of it are in the sum of all sessions."""
    is_busy: bool = False
    """A request of it pauses in its work: it neither sleeps nor is answered."""


@dataclass(slots=True)
class Fetch:
    """The partitions of one request; `wait` knows which of them to read."""

    session_id: int
    partitions: dict[Key, FetchedPartition]
    incremental: bool
    uses_ids: bool
    wait: FetchWait
    session: _Session | None = None
    next_epoch: int = 0

    def pauses(self) -> None:
        """Others run before the request goes on; no other request of the session may begin."""
        if self.session is not None:
            self.session.is_busy = True

    def rests(self) -> None:
        """The request sleeps or is answered: other requests of the session may begin."""
        session = self.session
        if session is not None and session.next_epoch == self.next_epoch:
            session.is_busy = False

    @property
    def is_superseded(self) -> bool:
        """Another request of the session has begun while this one slept."""
        return self.session is not None and self.session.next_epoch != self.next_epoch

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
class FetchSessions:
    """The broker's sessions, at most `slots` of them, least recently used first."""

    slots: int
    new_id: Callable[[], int]
    end_wait: Callable[[FetchWait], None] = FetchWait.close
    """Ends what a session or request waited for; it may do so in slices."""
    max_partitions: int = MAX_PARTITIONS
    partition_count: int = 0
    """Of all sessions."""
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
        fetch = self._open(request, version, now_ms, is_of_follower)
        uses_ids = fetch.uses_ids
        _take(fetch, _requested(request.topics, version, uses_ids))
        if fetch.incremental and request.forgotten_topics_data:
            _forget(fetch, _keys(request.forgotten_topics_data, uses_ids))
        session = fetch.session
        if session is not None and (
            not fetch.incremental
            or not session.partitions
            or len(session.partitions) != session.counted
        ):
            self._keep(fetch)
        return fetch

    def beginning(
        self,
        request: Any,
        version: int,
        now_ms: int,
        is_of_follower: Callable[[Any], bool] = lambda request: False,
    ) -> Generator[Fetch | None, None, None]:
        """`begin`, in slices: None after each, and at last the partitions."""
        fetch = self._open(request, version, now_ms, is_of_follower)
        uses_ids = fetch.uses_ids
        fetch.pauses()
        is_begun = False
        try:
            for topics in _parts(request.topics):
                _take(fetch, _requested(topics, version, uses_ids))
                yield None
            if fetch.incremental:
                for topics in _parts(request.forgotten_topics_data):
                    _forget(fetch, _keys(topics, uses_ids))
                    yield None
            is_begun = True
        finally:
            # If the client has left in between, the session has only a part of the request.
            if not is_begun:
                self._end_of(fetch)
        if fetch.session is not None:
            self._keep(fetch)
        yield fetch

    def _open(
        self,
        request: Any,
        version: int,
        now_ms: int,
        is_of_follower: Callable[[Any], bool],
    ) -> Fetch:
        """The request's session, as it was; a new one is not kept yet."""
        session_id, epoch = NO_SESSION, FINAL_EPOCH
        if version >= SESSIONS:
            session_id, epoch = request.session_id, request.session_epoch
        uses_ids = version >= _TOPIC_IDS
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._end(session_id)
            partitions: dict[Key, FetchedPartition] = {}
            wait = FetchWait()
            session = None
            if epoch == INITIAL_EPOCH:
                session = _Session(uses_ids, partitions, wait, 1, now_ms, is_of_follower(request))
            return Fetch(NO_SESSION, partitions, False, uses_ids, wait, session, 1)
        session = self._sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.fetch_session_id_not_found)
        if session.next_epoch != epoch or session.is_busy:
            raise ApiError(ErrorCode.invalid_fetch_session_epoch)
        if session.uses_ids != uses_ids:
            raise ApiError(ErrorCode.fetch_session_topic_id_error)
        session.next_epoch = next_epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        session.used_ms = now_ms
        self._sessions.move_to_end(session_id)
        return Fetch(
            session_id, session.partitions, True, uses_ids, session.wait, session, next_epoch
        )

    def _keep(self, fetch: Fetch) -> None:
        """Keep its session with what it now has, or end it if that is nothing or too much."""
        session = fetch.session
        assert session is not None
        if not fetch.incremental:
            fetch.session_id = self._create(session)
            if fetch.session_id == NO_SESSION:
                fetch.session = None
        elif not session.partitions or not self._count(fetch.session_id, session):
            self._end_of(fetch)
            fetch.session_id = NO_SESSION

    def give_up(self, fetch: Fetch) -> None:
        """The request that began a session is answered without one."""
        self._end_of(fetch)
        fetch.session_id = NO_SESSION

    def _end_of(self, fetch: Fetch) -> None:
        """End its session, unless another request has done so."""
        if fetch.session is not None and self._sessions.get(fetch.session_id) is fetch.session:
            self._end(fetch.session_id)

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= session.counted
            self.end_wait(session.wait)

    def _create(self, session: _Session) -> int:
        """The id of the new session; NO_SESSION if there is no room for it."""
        size = len(session.partitions)
        if len(self._sessions) >= self.slots:
            evicted_id = self._evictable(session)
            if evicted_id == NO_SESSION:
                return NO_SESSION
            self._end(evicted_id)
        if self.partition_count + size > self.max_partitions:
            self._evict_for(session)
            if self.partition_count + size > self.max_partitions:
                return NO_SESSION
        session_id = self.new_id()
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self.new_id()
        self._sessions[session_id] = session
        session.counted = size
        self.partition_count += size
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

    def _evict_for(self, new: _Session) -> None:
        """End idle sessions, the least recently used ones first; then, for a follower's, the
        largest ones of consumers. None, if that is not enough.
        """
        idle = {
            session_id: None
            for session_id, session in self._sessions.items()
            if new.used_ms - session.used_ms > IDLE_BEFORE_EVICTION_MS
        }
        busy: list[int] = []
        if new.is_of_follower:
            busy = sorted(
                (
                    session_id
                    for session_id, session in self._sessions.items()
                    if not session.is_of_follower and session_id not in idle
                ),
                key=lambda session_id: -self._sessions[session_id].counted,
            )
        freed, ends = 0, []
        surplus = self.partition_count + len(new.partitions) - self.max_partitions
        for session_id in [*idle, *busy]:
            if freed >= surplus:
                break
            freed += self._sessions[session_id].counted
            ends.append(session_id)
        if freed >= surplus:
            for session_id in ends:
                self._end(session_id)

    def _count(self, session_id: int, session: _Session) -> bool:
        """Count the partitions that it has now. False if there is no room for them."""
        more = len(session.partitions) - session.counted
        if self._sessions.get(session_id) is session:
            if more > 0 and self.partition_count + more > self.max_partitions:
                return False
            session.counted += more
            self.partition_count += more
        return True


def _parts(topics: Sequence[Any]) -> Iterator[list[Any]]:
    """Topics and parts of topics, each time with about SLICE partitions."""
    part: list[Any] = []
    left = SLICE
    for topic in topics:
        partitions = topic.partitions
        left -= 1
        for start in range(0, len(partitions), SLICE):
            some = partitions[start : start + SLICE]
            part.append(topic if len(some) == len(partitions) else replace(topic, partitions=some))
            left -= len(some)
            if left <= 0:
                yield part
                part, left = [], SLICE
    yield part


def _requested(topics: Sequence[Any], version: int, uses_ids: bool) -> Iterator[FetchedPartition]:
    for topic in topics:
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


def _keys(topics: Sequence[Any], uses_ids: bool) -> list[Key]:
    return [
        (topic.topic_id if uses_ids else topic.topic, index)
        for topic in topics
        for index in topic.partitions
    ]


def _take(fetch: Fetch, requested: Iterator[FetchedPartition]) -> None:
    """The client names these partitions."""
    partitions = fetch.partitions
    if not partitions:
        partitions.update({(each.topic, each.index): each for each in requested})
        if fetch.incremental:
            fetch.wait.requested(partitions)
        return
    keys = []
    for each in requested:
        key = each.topic, each.index
        known = partitions.get(key)
        if known is not None:
            each.sent_high_watermark = known.sent_high_watermark
            each.sent_log_start = known.sent_log_start
            each.name = known.name
        partitions[key] = each
        keys.append(key)
    if fetch.incremental:
        # Otherwise all are due when the request begins (`FetchWait.begin`).
        fetch.wait.requested(keys)


def _forget(fetch: Fetch, keys: list[Key]) -> None:
    """The client removes these partitions from its session."""
    for key in keys:
        fetch.partitions.pop(key, None)
    fetch.wait.forget(keys)
