"""What a follower's fetch names while the session lasts, after it ends, or without one."""

from uuid import UUID

from ottla.protocol.errors import ErrorCode
from ottla.replica.replica_session import LAST_EPOCH, ReplicaSession
from ottla.replication.follower import FetchRequest

A, B = (UUID(int=1), 0), (UUID(int=1), 1)
OK = ErrorCode.none


def at(offset: int) -> FetchRequest:
    return FetchRequest(offset, 1, 1, 0)


def established() -> ReplicaSession:
    session = ReplicaSession()
    session.request({A: at(0), B: at(0)})
    assert session.on_response(OK, 7)
    return session


def test_first_all_then_what_changed() -> None:
    session = ReplicaSession()
    assert session.request({A: at(0), B: at(0)}) == (0, 0, {A: at(0), B: at(0)}, [])
    assert session.on_response(OK, 7)
    assert session.request({}) == (7, 1, {}, [])
    assert session.on_response(OK, 7)
    assert session.request({A: at(5), B: at(0)}) == (7, 2, {A: at(5)}, [])
    assert session.requested(A) == at(5)
    assert session.requested(B) == at(0)


def test_a_removed_partition_is_forgotten_once() -> None:
    session = established()
    assert session.request({A: None}) == (7, 1, {}, [A])
    assert session.on_response(OK, 7)
    assert session.requested(A) is None
    assert session.request({A: None}) == (7, 2, {}, [])


def test_without_a_session_every_request_is_full() -> None:
    session = ReplicaSession()
    session.request({A: at(0), B: at(0)})
    assert session.on_response(OK, 0)
    assert session.request({A: at(1)}) == (0, 0, {A: at(1), B: at(0)}, [])


def test_an_unknown_session_is_replaced() -> None:
    session = established()
    session.request({A: at(1)})
    assert not session.on_response(ErrorCode.fetch_session_id_not_found, 0)
    assert session.request({}) == (0, 0, {A: at(1), B: at(0)}, [])


def test_a_wrong_epoch_replaces_the_session() -> None:
    session = established()
    session.request({})
    assert not session.on_response(ErrorCode.invalid_fetch_session_epoch, 0)
    assert session.request({}) == (7, 0, {A: at(0), B: at(0)}, [])


def test_a_lost_connection_starts_a_new_session() -> None:
    session = established()
    session.request({A: at(1)})
    session.lost()
    assert session.request({}) == (0, 0, {A: at(1), B: at(0)}, [])


def test_a_response_of_another_session_is_ignored() -> None:
    session = established()
    session.request({})
    assert not session.on_response(OK, 8)
    assert session.request({}).session_epoch == 0


def test_the_session_ends_without_partitions() -> None:
    session = established()
    session.request({A: None, B: None})
    assert len(session) == 0
    assert session.request({A: at(3)}) == (7, 0, {A: at(3)}, [])


def test_epochs_wrap_to_one() -> None:
    session = established()
    session._epoch = LAST_EPOCH
    session.request({})
    assert session.on_response(OK, 7)
    assert session.request({}).session_epoch == 1
