from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest

from ottla.broker.fetch_session import Fetch, FetchSessions
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of

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


def answer(high_watermark: int = 5, size_bytes: int = 0, code: ErrorCode = ErrorCode.none) -> Any:
    return SimpleNamespace(
        error_code=code,
        size_bytes=size_bytes,
        high_watermark=high_watermark,
        log_start_offset=0,
        diverging_epoch=None,
        preferred_replica=-1,
    )


def news(fetch: Fetch, answers: Any) -> list[tuple[Any, int]]:
    partitions = list(fetch.partitions.values())
    return [
        (each.topic, each.index)
        for each in partitions
        if fetch.is_news(each, answers[each.topic, each.index])
    ]


@pytest.fixture
def sessions() -> FetchSessions:
    return FetchSessions(slots=2, new_id=count(100).__next__)


def test_full_fetch_opens_a_session_and_tells_everything(sessions: FetchSessions) -> None:
    fetch = sessions.begin(request(("a", 0, 3), ("b", 1, 4)), VERSION, now_ms=0)
    assert fetch.session_id == 100
    assert news(fetch, {("a", 0): answer(), ("b", 1): answer()}) == [("a", 0), ("b", 1)]


def test_next_fetch_tells_only_what_is_new(sessions: FetchSessions) -> None:
    first = sessions.begin(request(("a", 0, 3), ("b", 1, 4)), VERSION, now_ms=0)
    news(first, {("a", 0): answer(), ("b", 1): answer()})
    second = sessions.begin(request(session_id=100, epoch=1), VERSION, now_ms=1)
    assert [each.fetch_offset for each in second.partitions.values()] == [3, 4]
    changed = {("a", 0): answer(), ("b", 1): answer(high_watermark=6)}
    assert news(second, changed) == [("b", 1)]
    third = sessions.begin(request(session_id=100, epoch=2), VERSION, now_ms=1)
    assert news(third, changed) == []


def test_a_start_that_has_moved_is_told_once(sessions: FetchSessions) -> None:
    first = sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    (each,) = first.partitions.values()
    assert not each.is_behind(2), "nothing was told yet, so all is news anyway"
    news(first, {("a", 0): answer()})
    assert [each.is_behind(start) for start in (0, 2)] == [False, True]
    second = sessions.begin(request(session_id=100, epoch=1), VERSION, now_ms=0)
    moved = answer()
    moved.log_start_offset = 2
    assert news(second, {("a", 0): moved}) == [("a", 0)]
    assert not each.is_behind(2)


def test_an_error_is_told_and_so_is_its_end(sessions: FetchSessions) -> None:
    first = sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    news(first, {("a", 0): answer()})
    refused = answer(code=ErrorCode.not_leader_or_follower)
    for epoch, given, told in [
        (1, refused, 1),
        (2, refused, 1),
        (3, answer(), 1),
        (4, answer(), 0),
    ]:
        fetch = sessions.begin(request(session_id=100, epoch=epoch), VERSION, now_ms=0)
        assert len(news(fetch, {("a", 0): given})) == told


def test_partitions_come_and_go(sessions: FetchSessions) -> None:
    sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    fetch = sessions.begin(
        request(("b", 0, 7), session_id=100, epoch=1, forget=[("a", 0)]), VERSION, now_ms=0
    )
    assert list(fetch.partitions) == [("b", 0)]
    last = sessions.begin(request(session_id=100, epoch=2, forget=[("b", 0)]), VERSION, now_ms=0)
    assert last.session_id == 0
    assert len(sessions) == 0


def test_served_partitions_move_to_the_end(sessions: FetchSessions) -> None:
    sessions.begin(request(("a", 0, 3), ("b", 0, 3)), VERSION, now_ms=0)
    fetch = sessions.begin(request(session_id=100, epoch=1), VERSION, now_ms=0)
    news(fetch, {("a", 0): answer(size_bytes=9), ("b", 0): answer()})
    assert list(fetch.watch) == [("b", 0), ("a", 0)]


@pytest.mark.parametrize(
    ("session_id", "epoch", "code"),
    [
        (99, 1, ErrorCode.fetch_session_id_not_found),
        (100, 2, ErrorCode.invalid_fetch_session_epoch),
        (100, 5, ErrorCode.invalid_fetch_session_epoch),
    ],
)
def test_a_session_is_not_guessed(
    sessions: FetchSessions, session_id: int, epoch: int, code: ErrorCode
) -> None:
    sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    with pytest.raises(ApiError) as refused:
        sessions.begin(request(session_id=session_id, epoch=epoch), VERSION, now_ms=0)
    assert refused.value.code is code


def test_names_and_ids_do_not_mix_in_one_session(sessions: FetchSessions) -> None:
    sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    build = messages_of(1, 13, "request")
    by_id = build.FetchRequest(
        session_id=100, session_epoch=1, topics=(build.FetchTopic(topic_id=uuid4()),)
    )
    with pytest.raises(ApiError) as refused:
        sessions.begin(by_id, 13, now_ms=0)
    assert refused.value.code is ErrorCode.fetch_session_topic_id_error


def test_final_epoch_ends_the_session_and_opens_none(sessions: FetchSessions) -> None:
    sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    fetch = sessions.begin(request(("a", 0, 3), session_id=100, epoch=-1), VERSION, now_ms=0)
    assert fetch.session_id == 0
    assert len(sessions) == 0


def test_the_number_of_sessions_is_limited_and_only_idle_ones_give_way(
    sessions: FetchSessions,
) -> None:
    for _ in range(2):
        assert sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0).session_id
    assert sessions.begin(request(("a", 0, 3)), VERSION, now_ms=119_999).session_id == 0
    assert sessions.begin(request(("a", 0, 3)), VERSION, now_ms=120_000).session_id == 102
    assert len(sessions) == 2


def test_a_session_that_ends_watches_nothing(sessions: FetchSessions) -> None:
    first = sessions.begin(request(("a", 0, 3)), VERSION, now_ms=0)
    partition = Mock(waiters=None)
    first.watch.watch(("a", 0), partition)
    assert list(partition.waiters) == [first.watch]
    sessions.begin(request(session_id=100, epoch=1, forget=[("a", 0)]), VERSION, now_ms=1)
    assert partition.waiters is None
    assert len(sessions) == 0


def test_a_session_may_begin_with_nothing(sessions: FetchSessions) -> None:
    opened = sessions.begin(request(), VERSION, 0)
    assert opened.session_id != 0
    more = request(("t", 0, 5), session_id=opened.session_id, epoch=1)
    assert list(sessions.begin(more, VERSION, 0).partitions) == [("t", 0)]
