"""The group coordinator: requests in, answers out, restarts between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.turns import most_calls_at_once

from ottla.coordinator.group_coordinator import _in_parts
from ottla.groups.classic.requests import HeartbeatRequest, LeavingMember
from ottla.groups.offsets.commit import Cause
from ottla.groups.offsets.transactional_commit import TransactionalCommitRequest
from ottla.groups.settings import GroupSettings
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch, TransactionMarker

OK = ErrorCode.none


async def test_a_member_joins_syncs_beats_commits_and_leaves(bench: Any) -> None:
    groups = bench.coordinator
    member = await bench.join_alone()
    assert await groups.heartbeat(HeartbeatRequest("g", 1, member, None)) is OK
    request = bench.committing(7, generation=1, member_id=member)
    assert await groups.commit(request) == [OK]
    fetched = await groups.fetch("g", (("t", None, (0, 1)),))
    assert [(each.offset, each.metadata) for each in fetched[0]] == [(7, "m"), (-1, "")]
    (commit,) = bench.commits
    assert (commit.now_ms, [(*key, value.offset) for key, value in commit.records]) == (
        1_000_000,
        [("g", "t", 0, 7)],
    )
    left = await groups.leave("g", (LeavingMember(member, None),))
    assert left[0].error is OK
    assert (await groups.describe("g")).state == "Empty"
    with pytest.raises(ApiError) as refused:
        await groups.commit(request)
    assert refused.value.code is ErrorCode.unknown_member_id


async def test_all_of_it_is_there_after_a_restart(bench: Any) -> None:
    member = await bench.join_alone()
    await bench.coordinator.commit(bench.committing(7, generation=1, member_id=member))
    before = await bench.coordinator.describe("g")
    groups = bench.restart()
    assert await groups.describe("g") == before
    assert await groups.heartbeat(HeartbeatRequest("g", 1, member, None)) is OK
    assert (await groups.fetch_all("g"))["t"][0].offset == 7


async def test_a_restart_forgets_nothing_that_was_committed_and_ends_old_requests(
    bench: Any,
) -> None:
    member = await bench.join_alone()
    second = await bench.coordinator.join(bench.joining())
    waiting = asyncio.create_task(bench.coordinator.join(bench.joining(second.member_id)))
    await asyncio.sleep(0.01)
    groups = bench.restart()
    assert (await waiting).error is ErrorCode.not_coordinator
    assert (await groups.join(bench.joining(second.member_id))).error is ErrorCode.unknown_member_id
    assert await groups.heartbeat(HeartbeatRequest("g", 1, member, None)) is OK


async def test_two_members_share_and_the_follower_waits_for_the_leader(bench: Any) -> None:
    groups = bench.coordinator
    leader = await bench.join_alone()
    asked = await groups.join(bench.joining())
    second = asyncio.create_task(groups.join(bench.joining(asked.member_id)))
    await asyncio.sleep(0.01)
    beat = HeartbeatRequest("g", 1, leader, None)
    assert await groups.heartbeat(beat) is ErrorCode.rebalance_in_progress
    first = await groups.join(bench.joining(leader))
    assert {member.member_id for member in first.members} == {leader, asked.member_id}
    assert (await second).generation == 2
    follower = asyncio.create_task(groups.sync(bench.syncing(2, asked.member_id)))
    await asyncio.sleep(0.01)
    assert not follower.done()
    request = bench.syncing(2, leader)._replace(assignments={leader: b"0", asked.member_id: b"1"})
    assert (await groups.sync(request)).assignment == b"0"
    assert (await follower).assignment == b"1"


async def test_a_partition_that_moves_sends_everybody_away(bench: Any) -> None:
    groups = bench.coordinator
    log = bench.log_of("g")
    log.hold()
    commit = asyncio.create_task(groups.commit(bench.committing(7)))
    await asyncio.sleep(0.01)
    log.lost = True
    log.moved.set()
    with pytest.raises(ApiError) as refused:
        await commit
    assert refused.value.code is ErrorCode.not_coordinator
    bench.runtime.resigned(groups.partition_for("g"))


async def test_groups_without_a_name(bench: Any) -> None:
    groups = bench.coordinator
    invalid = ErrorCode.invalid_group_id
    assert (await groups.join(bench.joining(group=""))).error is invalid
    assert (await groups.sync(bench.syncing(1, "m")._replace(group=""))).error is invalid
    assert await groups.heartbeat(HeartbeatRequest("", 1, "m", None)) is invalid
    for refused in (groups.leave("", ()), groups.delete_offsets("", ())):
        with pytest.raises(ApiError) as raised:
            await refused
        assert raised.value.code is invalid
    # Older clients may commit, fetch and delete under the empty name.
    assert await groups.commit(bench.committing(7, group="")) == [OK]
    assert (await groups.fetch_all(""))["t"][0].offset == 7
    assert await groups.delete_group("") is OK


async def test_groups_are_listed_over_all_partitions(bench: Any) -> None:
    names = [f"group-{number}" for number in range(12)]
    for name in names:
        await bench.coordinator.commit(bench.committing(1, group=name))
    groups = bench.restart()
    found = await groups.list_groups(frozenset(), frozenset())
    assert sorted(group.group for group in found) == sorted(names)
    assert len({groups.partition_for(name) for name in names}) == bench.partitions
    assert await groups.list_groups(frozenset({"stable"}), frozenset()) == []


async def test_a_deleted_topic_takes_its_offsets_along_in_every_partition(bench: Any) -> None:
    groups = bench.coordinator
    for number in range(12):
        await groups.commit(bench.committing(1, 2, group=f"group-{number}"))
    await groups.topic_deleted("t", None)
    groups = bench.restart()
    for number in range(12):
        assert await groups.fetch_all(f"group-{number}") == {}


async def test_a_deletion_waits_for_no_replica(bench: Any) -> None:
    """The same task applies all other deltas too, and on the controller all plans wait for it."""
    groups = bench.coordinator
    await groups.commit(bench.committing(1, 2))
    log = bench.log_of("g")
    log.hold()
    await asyncio.wait_for(groups.topic_deleted("t", None), 20)
    assert log.records[-1].value is None
    fetch = asyncio.create_task(groups.fetch_all("g"))
    await asyncio.sleep(0.01)
    assert not fetch.done()
    log.release()
    assert await fetch == {}


async def test_the_sweep_removes_what_has_expired(bench: Any) -> None:
    bench.settings = GroupSettings(offsets_retention_check_interval_ms=5)
    groups = bench.restart()
    groups.start()
    await groups.commit(bench.committing(7))
    bench.clock.time_ms += bench.settings.offsets_retention_ms
    while await groups.list_groups(frozenset(), frozenset()):
        await asyncio.sleep(0.005)
    assert bench.log_of("g").records[-1].value is None
    assert [commit.cause for commit in bench.commits] == [Cause.SIMPLE, Cause.EXPIRED]


async def test_long_names_of_clients_still_fit_into_a_member_id(bench: Any) -> None:
    asked = await bench.coordinator.join(bench.joining(client_id="x" * 32_767))
    assert asked.error is ErrorCode.member_id_required
    assert len(asked.member_id) < 2_000


async def test_after_the_end_nobody_is_served(bench: Any) -> None:
    bench.close()
    answer = await bench.coordinator.join(bench.joining())
    assert answer.error is ErrorCode.coordinator_not_available


@pytest.mark.parametrize("name", ["x" * 32_768, "\N{SNOWMAN}" * 20_000])
async def test_names_that_no_record_has_room_for(bench: Any, name: str) -> None:
    groups = bench.coordinator
    invalid = ErrorCode.invalid_group_id
    assert (await groups.join(bench.joining(group=name))).error is invalid
    with pytest.raises(ApiError) as refused:
        await groups.commit(bench.committing(1, group=name))
    assert refused.value.code is invalid
    answer = await groups.join(bench.joining(group_instance_id=name))
    assert answer.error is ErrorCode.invalid_request
    assert await groups.commit(bench.committing(1, group=name[:5_000])) == [OK]


def in_transaction(
    bench: Any, *offsets: int, version: int = 3, **changes: object
) -> TransactionalCommitRequest:
    committed = bench.committing(*offsets).offsets
    request = TransactionalCommitRequest(
        "g", "id", ProducerEpoch(9, 2), -1, "", None, committed, version
    )
    return request._replace(**changes)  # type: ignore[arg-type]


class Verifier:
    """A transaction's coordinator, as the group coordinator sees it."""

    def __init__(self, bench: Any, error: ErrorCode = OK) -> None:
        self.error = error
        self.asked: list[tuple[str, int]] = []
        bench.verify = self
        bench.restart()

    async def __call__(self, request: TransactionalCommitRequest, partition: int) -> ErrorCode:
        self.asked.append((request.transactional_id, partition))
        await asyncio.sleep(0)
        return self.error


@pytest.mark.parametrize("version", range(6))
async def test_the_first_commit_of_a_transaction_is_verified(bench: Any, version: int) -> None:
    verifier = Verifier(bench)
    groups, log = bench.coordinator, bench.log_of("g")
    index = groups.partition_for("g")
    request = in_transaction(bench, 7, version=version)
    for _ in range(2):
        assert await groups.commit_in_transaction(request) == [OK]
    assert verifier.asked == [("id", index)]
    assert log.verified == [(request.producer, version >= 5)] * 2
    assert log.guards == ["guard"] * 2
    await groups.complete_transaction(index, 9, 2, True, 4)
    assert await groups.commit_in_transaction(request) == [OK]
    assert len(verifier.asked) == 2


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ErrorCode.network_exception, ErrorCode.coordinator_load_in_progress),
        (ErrorCode.not_coordinator, ErrorCode.not_coordinator),
        (ErrorCode.concurrent_transactions, ErrorCode.concurrent_transactions),
        (ErrorCode.invalid_producer_epoch, ErrorCode.invalid_producer_epoch),
        (ErrorCode.transaction_abortable, ErrorCode.transaction_abortable),
    ],
)
async def test_a_commit_that_is_not_verified_is_not_appended(
    bench: Any, error: ErrorCode, answer: ErrorCode
) -> None:
    verifier = Verifier(bench, error)
    request = in_transaction(bench, 7, version=4)
    with pytest.raises(ApiError) as refused:
        await bench.coordinator.commit_in_transaction(request)
    assert refused.value.code is answer
    assert bench.log_of("g").records == []
    verifier.error = OK
    assert await bench.coordinator.commit_in_transaction(request) == [OK]


async def test_verification_can_be_switched_off_for_older_clients(bench: Any) -> None:
    """At once: transaction.partition.verification.enable is dynamic."""
    verifier = Verifier(bench)
    bench.is_verifying = False
    assert await bench.coordinator.commit_in_transaction(in_transaction(bench, 7)) == [OK]
    assert verifier.asked == []
    newer = in_transaction(bench, 7, version=5, producer=ProducerEpoch(10, 0))
    assert await bench.coordinator.commit_in_transaction(newer) == [OK]
    assert len(verifier.asked) == 1
    assert bench.log_of("g").guards == [None, "guard"]


async def test_a_transaction_is_committed_by_its_marker(bench: Any) -> None:
    groups = bench.coordinator
    index = groups.partition_for("g")
    assert await groups.commit_in_transaction(in_transaction(bench, 7, 8)) == [OK, OK]
    (before,) = await groups.fetch("g", (("t", None, (0,)),), require_stable=True)
    assert [each.error for each in before] == [ErrorCode.unstable_offset_commit]
    assert await groups.fetch_all("g") == {}
    groups = bench.restart()
    assert bench.commits == []
    await groups.complete_transaction(index, 9, 2, True, 4)
    fetched = await groups.fetch_all("g", require_stable=True)
    assert [each.offset for each in fetched["t"]] == [7, 8]
    (commit,) = bench.commits
    assert [value.offset for _, value in commit.records] == [7, 8]
    first, _, marker = bench.log_of("g").records
    assert first.producer == ProducerEpoch(9, 2)
    assert marker.marker == TransactionMarker(ProducerEpoch(9, 2), True, 4)
    assert await bench.restart().fetch_all("g", require_stable=True) == fetched


async def test_an_aborted_transaction_commits_nothing(bench: Any) -> None:
    groups = bench.coordinator
    await groups.commit(bench.committing(1))
    await groups.commit_in_transaction(in_transaction(bench, 7))
    await groups.complete_transaction(groups.partition_for("g"), 9, 2, False, 4)
    assert (await groups.fetch_all("g", require_stable=True))["t"][0].offset == 1
    assert len(bench.commits) == 1


async def test_a_marker_is_answered_when_it_is_committed(bench: Any) -> None:
    groups = bench.coordinator
    await groups.commit_in_transaction(in_transaction(bench, 7))
    log = bench.log_of("g")
    log.hold()
    ending = asyncio.create_task(
        groups.complete_transaction(groups.partition_for("g"), 9, 2, True, 4)
    )
    await asyncio.sleep(0.01)
    assert len(log.records) == 2
    assert not ending.done()
    assert bench.commits == []
    log.release()
    await ending
    assert len(bench.commits) == 1


@pytest.mark.parametrize(
    ("refusal", "answer"),
    [
        # Kafka's transaction coordinator retries NOT_LEADER_OR_FOLLOWER, and gives up on the rest.
        (ErrorCode.not_leader_or_follower, ErrorCode.not_leader_or_follower),
        (ErrorCode.not_enough_replicas, ErrorCode.not_leader_or_follower),
        (ErrorCode.invalid_producer_epoch, ErrorCode.invalid_producer_epoch),
        (ErrorCode.transaction_coordinator_fenced, ErrorCode.transaction_coordinator_fenced),
    ],
)
async def test_a_marker_is_refused_with_the_errors_of_a_log(
    bench: Any, refusal: ErrorCode, answer: ErrorCode
) -> None:
    groups = bench.coordinator
    await groups.commit_in_transaction(in_transaction(bench, 7))
    bench.log_of("g").refuse = refusal
    with pytest.raises(ApiError) as refused:
        await groups.complete_transaction(groups.partition_for("g"), 9, 2, True, 4)
    assert refused.value.code is answer
    (fetched,) = await groups.fetch("g", (("t", None, (0,)),), require_stable=True)
    assert fetched[0].error is ErrorCode.unstable_offset_commit


async def test_a_commit_in_a_transaction_needs_a_group(bench: Any) -> None:
    for group in ("", "g" * 40_000):
        with pytest.raises(ApiError) as refused:
            await bench.coordinator.commit_in_transaction(in_transaction(bench, 7, group=group))
        assert refused.value.code is ErrorCode.invalid_group_id


@pytest.mark.parametrize("retention_ms", [-1, 60])
async def test_a_large_commit_is_the_same_as_a_small_one(
    bench: Any, monkeypatch: pytest.MonkeyPatch, retention_ms: int
) -> None:
    """Its records are made before the decision. One offset has too much metadata."""
    offsets = bench.committing(*range(40)).offsets
    offsets = (*offsets[:7], offsets[7]._replace(metadata="x" * 5_000), *offsets[8:])
    seen = []
    for at_once in (100, 3):
        monkeypatch.setattr("ottla.coordinator.group_coordinator.MAX_OFFSETS_AT_ONCE", at_once)
        bench.logs = type(bench.logs)(bench.partitions)
        bench.commits.clear()
        groups = bench.restart()
        request = bench.committing(offsets=offsets, retention_ms=retention_ms)
        errors = await groups.commit(request)
        transactional = in_transaction(bench)._replace(offsets=offsets)
        in_its_transaction = await groups.commit_in_transaction(transactional)
        told = [tuple(commit.records) for commit in bench.commits]
        seen.append((errors, in_its_transaction, told, bench.log_of("g").records))
        restarted = bench.restart()
        assert len((await restarted.fetch_all("g"))["t"]) == 39
    assert seen[0] == seen[1]
    assert seen[0][0][7] is ErrorCode.offset_metadata_too_large


async def test_what_is_committed_is_announced_in_order(bench: Any) -> None:
    """A large commit is announced in parts, between which the loop runs; others come after it."""
    groups = bench.coordinator
    await groups.commit(bench.committing(*range(2_500)))
    assert [len(commit.records) for commit in bench.commits] == [1_000]
    await groups.commit(bench.committing(9))
    for _ in range(3):
        await asyncio.sleep(0)
    assert [len(commit.records) for commit in bench.commits] == [1_000, 1_000, 500, 1]


async def test_what_waits_to_be_announced_is_limited(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.coordinator.coordinator_partition.MAX_WAITING_WORK", 1)
    await bench.coordinator.commit(bench.committing(*range(3_500)))
    assert [len(commit.records) for commit in bench.commits] == [1_000] * 3


@pytest.mark.parametrize("size", [2, 3, 4, 7, 100])
def test_topics_and_partitions_in_parts(size: int) -> None:
    topics = [("a", None, ()), ("b", None, (1, 2, 3, 4, 5)), ("c", None, (6,)), ("d", None, ())]
    found: dict[int, tuple[int, ...]] = {}
    for numbers, some in _in_parts(topics, size):
        assert len(some) + sum(len(partitions) for _, _, partitions in some) <= size
        for number, (topic, _, partitions) in zip(numbers, some, strict=True):
            assert topic == topics[number][0]
            found[number] = found.get(number, ()) + partitions
    assert list(found.items()) == list(enumerate(each[2] for each in topics))
    assert list(_in_parts([], size)) == [([], [])]


async def test_an_offset_that_is_deleted_while_many_are_read(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.coordinator.group_coordinator.MAX_FETCHED_AT_ONCE", 3)
    groups = bench.coordinator
    await groups.commit(bench.committing(*range(5)))
    reading = asyncio.create_task(groups.fetch_all("g"))
    await asyncio.sleep(0)
    await groups.delete_offsets("g", (("t", (4,)),))
    found = (await reading)["t"]
    assert [(each.partition, each.offset) for each in found] == [(n, n) for n in range(4)]


async def many_offsets(bench: Any) -> None:
    """Of groups in one partition of the log: 4,500 of group g, some for other groups."""
    groups = bench.coordinator
    same = [f"n{number}" for number in range(40)]
    same = [name for name in same if groups.partition_for(name) == groups.partition_for("g")]
    for name in same:
        await groups.commit(bench.committing(1, group=name))
    await groups.commit(bench.committing(*range(4_500)))


async def test_many_offsets_of_a_group_are_deleted_in_parts(bench: Any) -> None:
    await many_offsets(bench)
    groups = bench.coordinator
    error, most_calls = await most_calls_at_once(groups.delete_group("g"))
    assert (error, most_calls < 100_000) == (OK, True)
    assert (await groups.describe("g")).reason == "Group g not found."
    groups = bench.restart()
    assert await groups.fetch_all("g") == {}
    assert (await groups.describe("g")).reason == "Group g not found."


async def test_many_offsets_in_a_deleted_topic_are_removed_in_parts(bench: Any) -> None:
    await many_offsets(bench)
    _, most_calls = await most_calls_at_once(bench.coordinator.topic_deleted("t", None))
    assert most_calls < 100_000
    groups = bench.restart()
    for group in await groups.list_groups(frozenset(), frozenset()):
        assert await groups.fetch_all(group.group) == {}


async def test_many_expired_offsets_are_removed_in_parts(bench: Any) -> None:
    await many_offsets(bench)
    bench.clock.time_ms += bench.settings.offsets_retention_ms
    _, most_calls = await most_calls_at_once(bench.coordinator.remove_expired())
    assert most_calls < 100_000
    assert await bench.restart().list_groups(frozenset(), frozenset()) == []


async def test_a_log_that_refuses_ends_a_removal(bench: Any) -> None:
    await many_offsets(bench)
    bench.log_of("g").refuse = ErrorCode.kafka_storage_error
    groups = bench.coordinator
    await groups.topic_deleted("t", None)
    bench.clock.time_ms += bench.settings.offsets_retention_ms
    await groups.remove_expired()
    with pytest.raises(ApiError, match="not_coordinator"):
        await groups.delete_group("g")
    bench.log_of("g").refuse = None
    assert len((await groups.fetch_all("g"))["t"]) == 4_500


async def test_removed_offsets_are_announced_with_their_cause(bench: Any) -> None:
    groups = bench.coordinator
    await groups.commit(bench.committing(0, 1, 2, 3))
    await groups.delete_offsets("g", (("t", (0,)),))
    await groups.delete_group("g")
    first, deleted, gone = bench.commits
    assert (first.cause, list(first.before)) == (Cause.SIMPLE, [None] * 4)
    assert (deleted.cause, gone.cause) == (Cause.OFFSET_DELETE, Cause.DELETE_GROUPS)
    values = dict(first.records)
    for told in (deleted, gone):
        for (key, value), before in zip(told.records, told.before, strict=True):
            assert value is None
            assert before == values.get(key)
    assert len(deleted.records) == 1
    assert sum(before is not None for before in gone.before) == 3


async def test_every_groups_offset_in_one_partition(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many groups are read in parts; a partition that is not ready is left out."""
    monkeypatch.setattr("ottla.coordinator.group_coordinator.MAX_GROUPS_AT_ONCE", 2)
    groups = bench.coordinator
    names = [f"g{number}" for number in range(9)]
    for name in names:
        await groups.commit(bench.committing(7)._replace(group=name))
    found = await groups.offsets_of("t", 0, 1_000)
    assert sorted(found) == list(range(bench.partitions))
    values = {group: value for one in found.values() for group, value in one.items()}
    assert sorted(values) == names
    assert {value.offset for value in values.values()} == {7}
    assert not any((await groups.offsets_of("other", 0, 1_000)).values())
    bench.close()
    assert await groups.offsets_of("t", 0, 1_000) == {}
