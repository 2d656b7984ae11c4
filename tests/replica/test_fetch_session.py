from itertools import count
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest

from ottla.log.file_range import FileRange
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of
from ottla.replica.fetch_session import Fetch, FetchSessions
from ottla.replica.fetch_wait import NO_CONDITIONS
from ottla.replica.partition_reader import Read
from ottla.runtime.slices import SLICE

VERSION = 12


def request(
    *offsets: tuple[str, int, int], session_id: int = 0, epoch: int = 0, forget: Any = ()
) -> Any:
    build = messages_of(1, VERSION, "request")
    return build.FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=tuple(
            build.FetchTopic(
                topic=topic,
                partitions=(
                    build.FetchPartition(
                        partition=index, fetch_offset=offset, partition_max_bytes=100
                    ),
                ),
            )
            for topic, index, offset in offsets
        ),
        forgotten_topics_data=tuple(
            build.ForgottenTopic(topic=topic, partitions=(index,)) for topic, index in forget
        ),
    )


def answer(high_watermark: int = 5, size_bytes: int = 0, code: ErrorCode = ErrorCode.none) -> Read:
    data = FileRange(None, 0, size_bytes)
    return Read(data, high_watermark, high_watermark, 0, error_code=code)


def to_send(fetch: Fetch, answers: Any) -> list[tuple[Any, int]]:
    partitions = list(fetch.partitions.values())
    return [
        (each.topic, each.index)
        for each in partitions
        if fetch.has_to_send(each, answers[each.topic, each.index])
    ]


@pytest.fixture
def sessions() -> FetchSessions:
    return FetchSessions(slots=2, new_id=count(100).__next__)


def test_a_full_fetch_creates_a_session_and_sends_everything(sessions: FetchSessions) -> None:
    fetch = sessions.begin(request(("a", 0, 3), ("b", 1, 4)), VERSION, now_ms=0)
    assert fetch.session_id == 100
    assert to_send(fetch, {("a", 0): answer(), ("b", 1): answer()}) == [("a", 0), ("b", 1)]


def test_the_next_fetch_sends_only_changes(sessions: FetchSessions) -> None:
    first = sessions.begin(request(("a", 0, 3), ("b", 1, 4)), VERSION, now_ms=0)
    to_send(first, {("a", 0): answer(), ("b", 1): answer()})
    second = sessions.begin(request(session_id=100, epoch=1), VERSION, now_ms=1)
    assert [each.fetch_offset for each in second.partitions.values()] == [3, 4]
    changed = {("a", 0): answer(), ("b", 1): answer(high_watermark=6)}
    assert to_send(second, changed) == [("b", 1)]
    third = sessions.begin(request(session_id=100, epoch=2), VERSION, now_ms=1)
    assert to_send(third, changed) == []


def test_the_topics_of_a_session(sessions: FetchSessions) -> None:
    fetch = sessions.begin(request(("a", 0, 3), ("a", 1, 4), ("b", 1, 4)), VERSION, now_ms=0)
    assert sessions.topics(fetch.session_id) == {"a", "b"}
    assert sessions.topics(7) == set()


def test_a_moved_log_start_is_sent_once(sessions: FetchSessions) -> None:
    first = sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    (each,) = first.partitions.values()
    assert not each.is_behind(2), "nothing was sent yet, so everything will be"
    to_send(first, {("a", 0): answer()})
    assert [each.is_behind(start) for start in (0, 2)] == [False, True]
    second = sessions.begin(request(session_id=100, epoch=1), VERSION, now_ms=0)
    moved = answer()._replace(log_start_offset=2)
    assert to_send(second, {("a", 0): moved}) == [("a", 0)]
    assert not each.is_behind(2)


def test_an_error_and_its_end_are_sent(sessions: FetchSessions) -> None:
    first = sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    to_send(first, {("a", 0): answer()})
    refused = answer(code=ErrorCode.not_leader_or_follower)
    for epoch, given, told in [
        (1, refused, 1),
        (2, refused, 1),
        (3, answer(), 1),
        (4, answer(), 0),
    ]:
        fetch = sessions.begin(request(session_id=100, epoch=epoch), VERSION, now_ms=0)
        assert len(to_send(fetch, {("a", 0): given})) == told


def test_partitions_come_and_go(sessions: FetchSessions) -> None:
    sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    fetch = sessions.begin(
        request(("b", 0, 7), session_id=100, epoch=1, forget=[("a", 0)]), VERSION, now_ms=0
    )
    assert list(fetch.partitions) == [("b", 0)]
    last = sessions.begin(request(session_id=100, epoch=2, forget=[("b", 0)]), VERSION, now_ms=0)
    assert last.session_id == 0
    assert len(sessions) == 0


def test_a_broker_without_slots_has_no_sessions() -> None:
    sessions = FetchSessions(slots=0, new_id=count(100).__next__)
    for now_ms in (0, 1_000_000):
        assert sessions.begin(request(("a", 0, 3)), VERSION, now_ms=now_ms).session_id == 0
    assert len(sessions) == 0


def test_served_partitions_move_to_the_end(sessions: FetchSessions) -> None:
    first = sessions.begin(request(("a", 0, 3), ("b", 0, 3)), VERSION, now_ms=0)
    first.wait.begin(NO_CONDITIONS, first.partitions, 0)
    fetch = sessions.begin(request(session_id=100, epoch=1), VERSION, now_ms=0)
    to_send(fetch, {("a", 0): answer(size_bytes=9), ("b", 0): answer()})
    assert fetch.wait.due() == [("b", 0), ("a", 0)]


@pytest.mark.parametrize(
    ("session_id", "epoch", "code"),
    [
        (99, 1, ErrorCode.fetch_session_id_not_found),
        (100, 2, ErrorCode.invalid_fetch_session_epoch),
        (100, 5, ErrorCode.invalid_fetch_session_epoch),
    ],
)
def test_a_wrong_session_is_refused(
    sessions: FetchSessions, session_id: int, epoch: int, code: ErrorCode
) -> None:
    sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    with pytest.raises(ApiError) as refused:
        sessions.begin(request(session_id=session_id, epoch=epoch), VERSION, now_ms=0)
    assert refused.value.code is code


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_names_its_partitions(sessions: FetchSessions, version: int) -> None:
    """Fields that a version does not have are unknown."""
    build = messages_of(1, version, "request")
    fields: dict[str, Any] = {"partition": 3, "fetch_offset": 7, "partition_max_bytes": 9}
    expected = [3, 7, 9, -1, -1, -1]
    for at, (since, name) in enumerate(
        ((9, "current_leader_epoch"), (12, "last_fetched_epoch"), (5, "log_start_offset")), start=3
    ):
        if version >= since:
            fields[name] = expected[at] = 20 + at
    topic_id = uuid4()
    named: dict[str, Any] = {"topic_id": topic_id} if version >= 13 else {"topic": "a"}
    topic = build.FetchTopic(partitions=(build.FetchPartition(**fields),), **named)
    fetch = sessions.begin(build.FetchRequest(topics=(topic,)), version, now_ms=0)
    ((key, each),) = fetch.partitions.items()
    assert key == (topic_id if version >= 13 else "a", 3)
    assert [
        each.index, each.fetch_offset, each.max_bytes, each.leader_epoch,
        each.last_fetched_epoch, each.log_start_offset,
    ] == expected  # fmt: skip


def test_names_and_ids_do_not_mix_in_one_session(sessions: FetchSessions) -> None:
    sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    build = messages_of(1, 13, "request")
    by_id = build.FetchRequest(
        session_id=100, session_epoch=1, topics=(build.FetchTopic(topic_id=uuid4()),)
    )
    with pytest.raises(ApiError) as refused:
        sessions.begin(by_id, 13, now_ms=0)
    assert refused.value.code is ErrorCode.fetch_session_topic_id_error


def test_the_final_epoch_ends_the_session(sessions: FetchSessions) -> None:
    sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    fetch = sessions.begin(request(("a", 0, 3), session_id=100, epoch=-1), VERSION, now_ms=0)
    assert fetch.session_id == 0
    assert len(sessions) == 0


def test_a_full_cache_evicts_only_idle_sessions(
    sessions: FetchSessions,
) -> None:
    for _ in range(2):
        assert sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0).session_id
    assert sessions.begin(request(("a", 0, 3)), VERSION, now_ms=119_999).session_id == 0
    assert sessions.begin(request(("a", 0, 3)), VERSION, now_ms=120_000).session_id == 0
    assert sessions.begin(request(("a", 0, 3)), VERSION, now_ms=120_001).session_id == 102
    assert len(sessions) == 2


def begin_as_follower(sessions: FetchSessions, now_ms: int) -> int:
    asked = request(("a", 0, 3))
    return sessions.begin(asked, VERSION, now_ms, lambda request: request is asked).session_id


def test_a_follower_takes_the_slot_of_a_consumer(sessions: FetchSessions) -> None:
    """Of the one with the fewest partitions, although it is busy (FetchSessionCacheShard)."""
    sessions.begin(request(("a", 0, 3), ("b", 0, 3)), VERSION, now_ms=0)
    small = sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    assert begin_as_follower(sessions, 1) == 102
    assert small.wait.is_closed
    with pytest.raises(ApiError) as refused:
        sessions.begin(request(session_id=101, epoch=1), VERSION, now_ms=1)
    assert refused.value.code is ErrorCode.fetch_session_id_not_found
    assert begin_as_follower(sessions, 1) == 103
    assert begin_as_follower(sessions, 1) == 0, "followers do not take each other's"
    assert sessions.begin(request(("a", 0, 3)), VERSION, now_ms=1).session_id == 0
    assert sessions.topics(102) == sessions.topics(103) == {"a"}


def test_an_idle_session_is_taken_first_also_that_of_a_follower(sessions: FetchSessions) -> None:
    assert begin_as_follower(sessions, 0) == 100
    sessions.begin(request(("a", 0, 3)), VERSION, now_ms=120_001)
    assert begin_as_follower(sessions, 120_001) == 102
    assert sessions.topics(100) == set()
    assert sessions.topics(101) == {"a"}


def test_a_session_that_ends_watches_nothing(sessions: FetchSessions) -> None:
    first = sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    partition = Mock(waiters=None)
    first.wait.was_read(("a", 0), partition, at_end=True)
    first.wait.watch()
    assert list(partition.waiters) == [first.wait]
    sessions.begin(request(session_id=100, epoch=1, forget=[("a", 0)]), VERSION, now_ms=1)
    assert partition.waiters is None
    assert len(sessions) == 0


def test_a_session_may_start_empty(sessions: FetchSessions) -> None:
    opened = sessions.begin(request(), VERSION, 0)
    assert opened.session_id != 0
    more = request(("t", 0, 5), session_id=opened.session_id, epoch=1)
    assert list(sessions.begin(more, VERSION, 0).partitions) == [("t", 0)]


def of_many(count: int, first: int = 0, **session: Any) -> Any:
    """Of partitions of many topics: ten of each."""
    return request(*[(f"t{n // 10}", n % 10, n) for n in range(first, first + count)], **session)


def test_slices_begin_the_same_fetch() -> None:
    begun = []
    for in_slices in (False, True):
        sessions = FetchSessions(slots=2, new_id=count(100).__next__)
        for asked in (
            of_many(2 * SLICE + 3),
            of_many(SLICE, SLICE // 2, session_id=100, epoch=1, forget=[("t0", 0), ("t7", 3)]),
        ):
            steps = list(sessions.beginning(asked, VERSION, 0)) if in_slices else []
            fetch = steps[-1] if in_slices else sessions.begin(asked, VERSION, 0)
            assert fetch is not None
            assert steps[:-1] == [None] * len(steps[:-1])
            fetch.rests()
            fetch.wait.begin(NO_CONDITIONS, fetch.partitions, 0)
            begun.append((fetch.session_id, fetch.partitions, fetch.wait.due(), len(steps) > 2))
        assert sessions.partition_count == 2 * SLICE + 1
    assert [each[:3] for each in begun[:2]] == [each[:3] for each in begun[2:]]
    assert [each[3] for each in begun] == [False, False, True, True]


def test_a_session_is_busy_until_its_request_rests(sessions: FetchSessions) -> None:
    opened = sessions.begin(request(("a", 0, 3)), VERSION, 0)
    opened.pauses()
    with pytest.raises(ApiError) as refused:
        sessions.begin(request(session_id=100, epoch=1), VERSION, 0)
    assert refused.value.code is ErrorCode.invalid_fetch_session_epoch
    opened.rests()
    second = sessions.begin(request(session_id=100, epoch=1), VERSION, 0)
    second.pauses()
    assert (opened.is_superseded, second.is_superseded) == (True, False)
    opened.rests()
    with pytest.raises(ApiError):
        sessions.begin(request(session_id=100, epoch=2), VERSION, 0)


def test_all_sessions_keep_a_limited_number_of_partitions() -> None:
    sessions = FetchSessions(slots=10, new_id=count(100).__next__, max_partitions=30)
    assert [sessions.begin(of_many(10), VERSION, 0).session_id for _ in range(2)] == [100, 101]
    assert sessions.begin(of_many(11), VERSION, 0).session_id == 0
    assert sessions.begin(of_many(10), VERSION, 0).session_id == 102
    assert sessions.begin(of_many(1), VERSION, 0).session_id == 0
    assert sessions.partition_count == 30
    grown = sessions.begin(of_many(1, 10, session_id=100, epoch=1), VERSION, 0)
    assert (grown.session_id, len(grown.partitions), grown.wait.is_closed) == (0, 11, True)
    assert (len(sessions), sessions.partition_count) == (2, 20)
    assert sessions.begin(of_many(31), VERSION, 200_000).session_id == 0
    assert len(sessions) == 2, "none ends for nothing"
    assert sessions.begin(of_many(25), VERSION, 200_000).session_id == 103
    assert (len(sessions), sessions.partition_count) == (1, 25)


def test_a_follower_takes_the_room_of_the_largest_consumers() -> None:
    sessions = FetchSessions(slots=10, new_id=count(100).__next__, max_partitions=30)
    for size in (5, 15, 10):
        sessions.begin(of_many(size), VERSION, 0)
    follower = sessions.begin(of_many(12), VERSION, 1, lambda request: True)
    assert (follower.session_id, sessions.partition_count) == (103, 27)
    assert sessions.topics(101) == set()
    assert sessions.begin(of_many(19), VERSION, 1, lambda request: True).session_id == 0
    assert len(sessions) == 3, "followers do not take each other's"
