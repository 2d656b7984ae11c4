"""Roles over a log that has only a start and an end: no file, no broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.controller.image import NO_LEADER, PartitionState
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replica.partition_host import PartitionHost
from ottla.replica.partition_role import PartitionRole, Role
from ottla.replication.leader import FetchingReplica

ALL = (1, 2, 3)


class Ends:
    """A log that holds offsets 2 to 9."""

    start_offset = 2
    end_offset = 10

    def __init__(self) -> None:
        self.begun: list[tuple[int, int]] = []
        self.epochs: Any = SimpleNamespace(begin=lambda *began: self.begun.append(began))


@pytest.fixture
def ends() -> Ends:
    return Ends()


def role_of(ends: Ends, host: PartitionHost, high_watermark: int = 5) -> PartitionRole:
    return PartitionRole(UUID(int=1), 0, ends, host, high_watermark)


def state(leader: int, epoch: int, *, isr: Any = ALL, replicas: Any = ALL, at: int = 1) -> Any:
    return PartitionState(leader, epoch, replicas, isr, at)


def code_of(call: Any, *arguments: Any) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        call(*arguments)
    return refused.value.code


@pytest.mark.parametrize(("checkpoint", "known"), [(0, 2), (5, 5), (11, 10)])
def test_the_checkpoint_is_bounded_by_the_log(
    ends: Ends, host: PartitionHost, checkpoint: int, known: int
) -> None:
    role = role_of(ends, host, checkpoint)
    assert (role.kind, role.high_watermark) == (Role.NONE, known)


def test_the_controller_assigns_roles(ends: Ends, host: PartitionHost) -> None:
    role = role_of(ends, host)
    seen = []
    for given in (
        state(2, 1),
        state(1, 2),
        state(NO_LEADER, 3),
        state(2, 4, replicas=(2, 3), isr=(2, 3)),
    ):
        assert role.update(given)
        seen.append((role.kind, role.leader is not None, role.leadership, role.high_watermark))
    assert seen == [
        (Role.FOLLOWER, False, 0, 5),
        (Role.LEADER, True, 0, 5),
        (Role.NONE, False, 1, 5),
        (Role.NONE, False, 1, 5),
    ]
    assert ends.begun == [(2, 10)], "followers can ask where the epoch began"


def test_older_states_are_ignored(ends: Ends, host: PartitionHost) -> None:
    role = role_of(ends, host)
    assert role.update(state(1, 3, at=7))
    assert not role.update(state(1, 3, at=7))
    assert not role.update(state(2, 3, at=6))
    assert not role.update(state(2, 2, at=9))
    assert (role.kind, role.leader_epoch) == (Role.LEADER, 3)


def test_the_only_replica_commits_what_it_appends(ends: Ends, host: PartitionHost) -> None:
    role = role_of(ends, host)
    role.update(state(1, 1, replicas=(1,), isr=(1,)))
    assert (role.is_alone, role.high_watermark) == (True, 10)
    ends.end_offset = 20
    assert role.high_watermark == 20
    role.update(state(1, 1, isr=(1,), at=2))
    ends.end_offset = 30
    assert (role.is_alone, role.high_watermark) == (False, 20), "others are to have the rest"


def test_a_leader_advances_with_its_isr(ends: Ends, host: PartitionHost) -> None:
    role = role_of(ends, host)
    role.update(state(1, 1, isr=(1, 2)))
    assert not role.advance()
    fetched = {"end_offset": 10, "now_ms": 1_000}
    assert role.leading().fetched(FetchingReplica(2), 8, 2, **fetched)
    assert role.advance()
    assert role.high_watermark == 8
    assert not role.advance()
    role.stop_leading(Role.NONE)
    assert not role.advance()
    assert role.high_watermark == 8


def test_a_follower_follows_within_its_log(ends: Ends, host: PartitionHost) -> None:
    role = role_of(ends, host)
    role.update(state(2, 1))
    assert [role.follow(offset) for offset in (4, 5, 7, 99, 99)] == [
        False, False, True, True, False,
    ]  # fmt: skip
    assert role.high_watermark == 10
    ends.end_offset = 6
    role.truncated()
    assert role.high_watermark == 6
    ends.start_offset = ends.end_offset = 40
    role.truncated()
    assert role.high_watermark == 40


def test_too_few_in_sync(ends: Ends, host: PartitionHost) -> None:
    role = role_of(ends, host)
    assert code_of(role.check_in_sync) is ErrorCode.not_leader_or_follower
    role.update(state(1, 1, isr=(1,)))
    role.check_in_sync()
    role.min_insync_replicas = 2
    assert code_of(role.check_in_sync) is ErrorCode.not_enough_replicas
    after = ErrorCode.not_enough_replicas_after_append
    assert code_of(role.check_still_in_sync) is after
    role.update(state(1, 1, replicas=(1,), isr=(1,), at=2))
    role.check_in_sync()
    role.check_still_in_sync()


def test_leader_epochs_are_checked(ends: Ends, host: PartitionHost) -> None:
    role = role_of(ends, host)
    role.update(state(2, 4))
    role.check_leader_epoch(-1)
    role.check_leader_epoch(4)
    assert code_of(role.check_leader_epoch, 3) is ErrorCode.fenced_leader_epoch
    assert code_of(role.check_leader_epoch, 5) is ErrorCode.unknown_leader_epoch


def test_only_the_current_leadership_is_valid(ends: Ends, host: PartitionHost) -> None:
    role = role_of(ends, host)
    assert code_of(role.check_leadership, 0) is ErrorCode.not_leader_or_follower
    role.update(state(1, 1))
    role.check_leadership(0)
    role.update(state(2, 2))
    assert code_of(role.check_leadership, 1) is ErrorCode.not_leader_or_follower
    role.update(state(1, 3))
    role.check_leadership(1)
    assert code_of(role.check_leadership, 0) is ErrorCode.not_leader_or_follower


def test_a_broker_without_a_replica_is_refused(ends: Ends, host: PartitionHost) -> None:
    role = role_of(ends, host)
    role.update(state(1, 1))
    role.check_replica(2, 1)
    assert code_of(role.check_replica, 9, 1) is ErrorCode.unknown_leader_epoch
    assert code_of(role.check_replica, 9, -1) is ErrorCode.not_leader_or_follower


def test_an_answered_proposal_changes_the_state(ends: Ends, host: PartitionHost) -> None:
    role = role_of(ends, host)
    assert role.in_sync_change(1_000) is None
    role.update(state(1, 1))
    change = role.in_sync_change(1_000 + host.lag_max_ms + 1)
    assert change is not None
    assert [broker for broker, _ in change.isr] == [1]
    written = state(1, 1, isr=(1,), at=2)
    assert role.in_sync_answered(ErrorCode.none, written, change)
    assert role.state == written
    assert not role.in_sync_answered(ErrorCode.none, written, change), "it is known"
    role.stop_leading(Role.NONE)
    assert not role.in_sync_answered(ErrorCode.none, state(1, 1, at=9), None)
