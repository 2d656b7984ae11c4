"""Share sessions: epochs, limits, and what ends with a connection."""

from uuid import UUID

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica import share_session
from ottla.replica.share_session import (
    LAST_EPOCH,
    MAX_PARTITIONS,
    SMALL,
    Member,
    ShareSession,
    ShareSessions,
    TopicPartition,
    next_epoch,
)

A, B = Member("g", "a"), Member("g", "b")
T0, T1 = TopicPartition(UUID(int=7), 0), TopicPartition(UUID(int=7), 1)


class Bench:
    def __init__(self, most: int = 10) -> None:
        self.ended: list[ShareSession] = []
        self.sessions = ShareSessions(lambda: most, self.ended.append)


def code(call: object) -> ErrorCode:
    assert callable(call)
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.code


def test_epochs_grow_and_begin_again_at_one() -> None:
    assert [next_epoch(0), next_epoch(7), next_epoch(LAST_EPOCH)] == [1, 8, 1]
    sessions = Bench().sessions
    session = sessions.begin(A, 1, [T0, T1])
    assert session.partitions == {T0: True, T1: True}
    assert sessions.go_on(A, 1) is session
    assert code(lambda: sessions.go_on(A, 1)) is ErrorCode.invalid_share_session_epoch
    assert sessions.go_on(A, 2) is sessions.get(A)
    assert code(lambda: sessions.go_on(B, 1)) is ErrorCode.share_session_not_found


def test_a_session_that_begins_again_releases_nothing() -> None:
    bench = Bench(1)
    before = bench.sessions.begin(A, 1, [T0])
    after = bench.sessions.begin(A, 2, [T0])
    assert (bench.ended, len(bench.sessions)) == ([], 1)
    bench.sessions.end(before)
    bench.sessions.connection_ended(1)
    assert bench.ended == []
    bench.sessions.connection_ended(2)
    assert bench.ended == [after]


def test_the_number_is_limited() -> None:
    bench = Bench(1)
    session = bench.sessions.begin(A, 1, [])
    limit = ErrorCode.share_session_limit_reached
    assert code(lambda: bench.sessions.begin(B, 2, [])) is limit
    bench.sessions.end(session)
    bench.sessions.begin(B, 2, [])


def test_a_session_has_only_so_many_partitions() -> None:
    bench = Bench()
    many = [TopicPartition(UUID(int=7), index) for index in range(MAX_PARTITIONS + 1)]
    assert code(lambda: bench.sessions.begin(A, 1, many)) is ErrorCode.invalid_request
    session = bench.sessions.begin(A, 1, many[1:])
    session.partitions[many[0]] = True
    assert code(lambda: bench.sessions.check_size(session)) is ErrorCode.invalid_request
    assert (len(bench.sessions), bench.ended[-1]) == (0, session)


def test_all_sessions_have_only_so_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_session, "MAX_ALL_PARTITIONS", SMALL + 2)
    bench = Bench()
    some = [TopicPartition(UUID(int=7), index) for index in range(SMALL + 1)]
    bench.sessions.begin(A, 1, some)
    limit = ErrorCode.share_session_limit_reached
    assert code(lambda: bench.sessions.begin(B, 1, some)) is limit
    assert len(bench.sessions) == 1
    session = bench.sessions.begin(B, 1, some[:SMALL])
    session.partitions[some[-1]] = True
    assert code(lambda: bench.sessions.check_size(session)) is limit
    assert len(bench.sessions) == 1


def test_all_sessions_of_a_connection_end_with_it() -> None:
    bench = Bench()
    other = Member("h", "a")
    bench.sessions.begin(A, 1, [])
    bench.sessions.begin(other, 1, [])
    bench.sessions.begin(B, 2, [])
    bench.sessions.connection_ended(1)
    assert [each.member for each in bench.ended] == [A, other]
    assert bench.sessions.has_group("g")
    assert not bench.sessions.has_group("h")
    bench.sessions.end_all()
    assert (len(bench.sessions), bench.sessions.has_group("g")) == (0, False)
