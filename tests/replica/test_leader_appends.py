"""What a leader appends: a real log, without a broker."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.controller.image import PartitionState
from ottla.log.log import Log
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.build import build_batch
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.replica.counts import Counts
from ottla.replica.leader_appends import LeaderAppends
from ottla.replica.partition_host import PartitionHost
from ottla.replica.partition_role import PartitionRole
from ottla.timelines.no_timeline import NoTimeline


class Steps(NoTimeline):
    """A timeline that keeps its appends."""

    def __init__(self) -> None:
        self.appends: list[tuple[int, int, str, int]] = []
        self.times_ms: list[int] = []

    def appended(
        self,
        base_offset: int,
        last_offset: int,
        now_ms: int,
        client_id: str,
        producer_id: int,
        is_plain: bool = False,
    ) -> None:
        self.appends.append((base_offset, last_offset, client_id, producer_id))
        self.times_ms.append(now_ms)


class Led:
    """The partition that is led."""

    def __init__(self, log: Log) -> None:
        self.counts = Counts()
        self.steps = Steps()
        self.opened_at: list[int] = []
        """The log's end each time the timeline was asked for."""
        self.opened_ms: list[int] = []
        """The time each time the timeline was asked for."""
        self.grown_at_ms: list[int] = []
        self._log = log

    def timeline_at(self, now_ms: int) -> Any:
        self.opened_at.append(self._log.end_offset)
        self.opened_ms.append(now_ms)
        return self.steps

    def grown(self, now_ms: int) -> None:
        self.grown_at_ms.append(now_ms)


@pytest.fixture
def led(log: Log) -> Led:
    return Led(log)


@pytest.fixture
def appends(log: Log, role: PartitionRole, host: PartitionHost, led: Led) -> LeaderAppends:
    return LeaderAppends(log, role, host, led)


def batch(*values: bytes, **written_by: Any) -> bytes:
    return build_batch([Record(0, 1_000, None, value) for value in values], **written_by)


def code_of(call: Any, *arguments: Any, **named: Any) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        call(*arguments, **named)
    return refused.value.code


def test_a_batch_is_written_recorded_and_counted(
    appends: LeaderAppends, role: PartitionRole, log: Log, led: Led
) -> None:
    first = appends.append(batch(b"a", b"b"), "me", to_all=True)
    assert first == (0, 1, -1, 0, role.leadership, True)
    assert appends.append(batch(b"c"), "you", to_all=False)[:2] == (2, 2)
    assert led.steps.appends == [(0, 1, "me", -1), (2, 2, "you", -1)]
    assert led.opened_at == [0, 2], "the timeline begins with the state before the append"
    assert led.grown_at_ms == [1_000, 1_000]
    counts = led.counts
    assert (counts.batches_in, counts.records_in, counts.bytes_in) == (2, 3, log.size_bytes)


def test_a_timeline_begins_at_the_time_of_its_first_append(
    log: Log, role: PartitionRole, host: PartitionHost, led: Led
) -> None:
    """A later one would say that the clock was set back, and the times around it would be lost."""
    ticks = count(1_000)
    clock = SimpleNamespace(now_ms=lambda: next(ticks), monotonic_ms=lambda: 0)
    host = replace(host, clock=clock)
    appends = LeaderAppends(log, role, host, led)
    appends.append(batch(b"a"), "me", to_all=True)
    sent = batch(b"b")
    appends.append_own(sent, list(iterate_headers(sent)), 990, role.leadership)
    assert led.opened_ms == led.steps.times_ms
    assert led.steps.times_ms == sorted(led.steps.times_ms), "990 was when the coordinator decided"


def test_a_duplicate_changes_nothing(appends: LeaderAppends, led: Led) -> None:
    sent = batch(b"a", producer_id=3, producer_epoch=0, base_sequence=0)
    assert appends.append(sent, "me", to_all=True) == appends.append(sent, "me", to_all=True)
    assert len(led.grown_at_ms) == len(led.steps.appends) == led.counts.batches_in == 1


@pytest.mark.parametrize("records", [None, b"", b"x" * 100, batch(b"a")[:-1]])
def test_bad_records_are_refused(appends: LeaderAppends, led: Led, records: bytes | None) -> None:
    code_of(appends.append, records, "me", to_all=True)
    assert (led.grown_at_ms, led.opened_at) == ([], [])


def test_transactional_records_need_a_transactional_id(appends: LeaderAppends) -> None:
    sent = batch(b"a", producer_id=3, producer_epoch=0, base_sequence=0, is_transactional=True)
    refused = ErrorCode.transactional_id_authorization_failed
    assert code_of(appends.append, sent, "me", to_all=True) is refused


def test_only_the_leader_appends(appends: LeaderAppends, role: PartitionRole) -> None:
    leadership = role.leadership
    sent, headers = batch(b"a"), list(iterate_headers(batch(b"a")))
    role.update(PartitionState(2, 1, (1, 2), (1, 2), 1))
    refused = ErrorCode.not_leader_or_follower
    assert code_of(appends.append, sent, "me", to_all=False) is refused
    assert code_of(appends.append_own, sent, headers, 5, leadership) is refused
    assert code_of(appends.begin_verification, 3, 0, 0, version_2=True) is refused
    marker = {"is_commit": True, "coordinator_epoch": 1, "transaction_version": 2}
    assert code_of(appends.append_marker, 3, 0, **marker) is refused


def test_a_batch_of_an_earlier_leadership_is_refused(
    appends: LeaderAppends, role: PartitionRole
) -> None:
    leadership = role.leadership
    role.update(PartitionState(2, 1, (1, 2), (1, 2), 1))
    role.update(PartitionState(1, 2, (1, 2), (1, 2), 2))
    sent, headers = batch(b"a"), list(iterate_headers(batch(b"a")))
    refused = ErrorCode.not_leader_or_follower
    assert code_of(appends.append_own, sent, headers, 5, leadership) is refused
    assert appends.append_own(sent, headers, 5, role.leadership).to_all


def test_what_follows_a_refused_batch_is_refused_like_it(
    appends: LeaderAppends, role: PartitionRole
) -> None:
    def sent(sequence: int, epoch: int = 0) -> bytes:
        return batch(b"a", producer_id=3, producer_epoch=epoch, base_sequence=sequence)

    appends.append(sent(0), "me", to_all=True)
    role.update(PartitionState(2, 1, (1, 2), (1, 2), 1))
    refused = ErrorCode.not_leader_or_follower
    assert code_of(appends.append, sent(1), "me", to_all=True) is refused
    role.update(PartitionState(1, 2, (1, 2), (1, 2), 2))
    # Was in flight with the refused one: as out of order, librdkafka would begin another epoch.
    assert code_of(appends.append, sent(2), "me", to_all=True) is refused
    assert code_of(appends.append, sent(5, 1), "me", to_all=True) is (
        ErrorCode.out_of_order_sequence_number
    )
    assert appends.append(sent(1), "me", to_all=True).first_offset == 1
    assert appends.append(sent(2), "me", to_all=True).first_offset == 2


def test_of_an_unknown_producer_no_later_batch_comes_first(
    appends: LeaderAppends, role: PartitionRole
) -> None:
    """It may begin at any sequence, and then the refused batch would be out of order for ever
    (KAFKA-14359).
    """

    def sent(sequence: int, producer_id: int = 3) -> bytes:
        return batch(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=sequence)

    role.update(PartitionState(2, 1, (1, 2), (1, 2), 1))
    refused = ErrorCode.not_leader_or_follower
    for sequence in (4, 5):
        assert code_of(appends.append, sent(sequence), "me", to_all=True) is refused
    role.update(PartitionState(1, 2, (1, 2), (1, 2), 2))
    for sequence in (6, 5):
        assert code_of(appends.append, sent(sequence), "me", to_all=True) is refused
    assert appends.append(sent(7, producer_id=4), "me", to_all=True).first_offset == 0
    for offset, sequence in enumerate((4, 5, 6), start=1):
        assert appends.append(sent(sequence), "me", to_all=True).first_offset == offset


def test_the_refusal_before_a_transactions_verification_counts(
    appends: LeaderAppends, role: PartitionRole
) -> None:
    appends.append(batch(b"a", producer_id=3, producer_epoch=0, base_sequence=0), "me", to_all=True)
    role.update(PartitionState(2, 1, (1, 2), (1, 2), 1))
    refused = ErrorCode.not_leader_or_follower
    assert code_of(appends.begin_verification, 3, 0, 1, version_2=True) is refused
    role.update(PartitionState(1, 2, (1, 2), (1, 2), 2))
    later = batch(b"c", producer_id=3, producer_epoch=0, base_sequence=2)
    assert code_of(appends.append, later, "me", to_all=True) is refused


@pytest.mark.parametrize("records", [b"", b"x", b"x" * 100])
def test_a_follower_refuses_what_is_no_batch(
    appends: LeaderAppends, role: PartitionRole, records: bytes
) -> None:
    role.update(PartitionState(2, 1, (1, 2), (1, 2), 1))
    refused = ErrorCode.not_leader_or_follower
    assert code_of(appends.append, records, "me", to_all=True) is refused


def test_too_few_in_sync_replicas_refuse_only_acks_all(
    appends: LeaderAppends, role: PartitionRole
) -> None:
    role.update(PartitionState(1, 1, (1, 2), (1,), 1))
    role.min_insync_replicas = 2
    refused = ErrorCode.not_enough_replicas
    assert code_of(appends.append, batch(b"a"), "me", to_all=True) is refused
    own, headers = batch(b"a"), list(iterate_headers(batch(b"a")))
    assert code_of(appends.append_own, own, headers, 5, role.leadership) is refused
    assert not appends.append(batch(b"a"), "me", to_all=False).to_all


def test_a_marker_ends_the_transaction(appends: LeaderAppends, log: Log) -> None:
    guard = appends.begin_verification(3, 1, 0, version_2=True)
    sent = batch(b"a", producer_id=3, producer_epoch=1, base_sequence=0, is_transactional=True)
    appends.append(sent, "me", to_all=True, is_transactional=True, guard=guard)
    assert log.last_stable_offset(1) == 0
    done = appends.append_marker(3, 2, is_commit=True, coordinator_epoch=1, transaction_version=2)
    assert done.last_offset == 1
    # The only replica commits it at once.
    assert log.last_stable_offset(2) == 2


def test_a_failed_write_is_reported(
    log: Log,
    role: PartitionRole,
    host: PartitionHost,
    led: Led,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed: list[tuple[object, ErrorCode]] = []
    host = replace(host, write_failed=lambda what, error: failed.append((what, error.code)))
    appends = LeaderAppends(log, role, host, led)

    def no_space(*_: object) -> int:
        raise OSError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(os, "pwritev", no_space)
    full = ErrorCode.kafka_storage_error
    assert code_of(appends.append, batch(b"a"), "me", to_all=True) is full
    assert failed == [(led, full)]
    assert (led.grown_at_ms, led.counts.batches_in) == ([], 0)
