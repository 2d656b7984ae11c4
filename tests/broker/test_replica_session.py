"""What a follower's fetch names, as the session goes on, ends, or never begins."""

from uuid import UUID

from ottla.broker.replica_session import LAST_EPOCH, ReplicaSession
from ottla.protocol.errors import ErrorCode
from ottla.replication.follower import Question

A, B = (UUID(int=1), 0), (UUID(int=1), 1)
OK = ErrorCode.none


def at(offset: int) -> Question:
    return Question(offset, 1, 1, 0)


def established() -> ReplicaSession:
    session = ReplicaSession()
    session.request({A: at(0), B: at(0)})
    assert session.answered(OK, 7)
    return session


def test_first_all_then_what_changed() -> None:
    session = ReplicaSession()
    assert session.request({A: at(0), B: at(0)}) == (0, 0, {A: at(0), B: at(0)}, [])
    assert session.answered(OK, 7)
    assert session.request({}) == (7, 1, {}, [])
    assert session.answered(OK, 7)
    assert session.request({A: at(5), B: at(0)}) == (7, 2, {A: at(5)}, [])
    assert session.asked(A) == at(5)
    assert session.asked(B) == at(0)


def test_what_is_asked_no_more_is_forgotten_once() -> None:
    session = established()
    assert session.request({A: None}) == (7, 1, {}, [A])
    assert session.answered(OK, 7)
    assert session.asked(A) is None
    assert session.request({A: None}) == (7, 2, {}, [])


def test_without_a_session_every_request_names_all() -> None:
    session = ReplicaSession()
    session.request({A: at(0), B: at(0)})
    assert session.answered(OK, 0)
    assert session.request({A: at(1)}) == (0, 0, {A: at(1), B: at(0)}, [])


def test_a_session_that_the_leader_no_longer_knows_begins_anew() -> None:
    session = established()
    session.request({A: at(1)})
    assert not session.answered(ErrorCode.fetch_session_id_not_found, 0)
    assert session.request({}) == (0, 0, {A: at(1), B: at(0)}, [])


def test_a_wrong_epoch_replaces_the_session() -> None:
    session = established()
    session.request({})
    assert not session.answered(ErrorCode.invalid_fetch_session_epoch, 0)
    assert session.request({}) == (7, 0, {A: at(0), B: at(0)}, [])


def test_a_lost_connection_begins_anew() -> None:
    session = established()
    session.request({A: at(1)})
    session.lost()
    assert session.request({}) == (0, 0, {A: at(1), B: at(0)}, [])


def test_a_session_of_another_number_is_no_answer() -> None:
    session = established()
    session.request({})
    assert not session.answered(OK, 8)
    assert session.request({}).session_epoch == 0


def test_nothing_left_to_ask_ends_it() -> None:
    session = established()
    session.request({A: None, B: None})
    assert len(session) == 0
    assert session.request({A: at(3)}) == (7, 0, {A: at(3)}, [])


def test_epochs_begin_again_at_one() -> None:
    session = established()
    session._epoch = LAST_EPOCH
    session.request({})
    assert session.answered(OK, 7)
    assert session.request({}).session_epoch == 1
