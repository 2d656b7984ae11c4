"""Share groups: what they want of share coordinators, which answer, refuse or wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from tests.api.groups.conftest import MemoryLog
from tests.groups.share.states import SUMMARY, States

from ottla.coordinator import late_deletions, state_turns
from ottla.coordinator.coordinator_runtime import CoordinatorRuntime
from ottla.coordinator.group_coordinator import GroupCoordinator, group_kind
from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.settings import GroupSettings
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.requests import HeartbeatRequest, HeartbeatResult
from ottla.groups.share.settings import ShareGroupSettings
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.share.stored import ShareKey

TOPIC = UUID(int=7)
MANY = 1_000
"""The most members that there may be."""


class Bench:
    """Topic `t` has two partitions, or as many as are given."""

    def __init__(self, partitions: int = 2) -> None:
        self.now_ms = 1_000_000
        self.states = States()
        self.log = MemoryLog()
        logs: Any = SimpleNamespace(open=lambda index: self.log, indexes=lambda: (0,))
        clock: Any = SimpleNamespace(now_ms=lambda: self.now_ms, monotonic_ms=lambda: self.now_ms)
        topics = Topics(1, {"t": Topic(TOPIC, partitions)})
        settings = ShareGroupSettings(max_size=MANY)
        kind = group_kind(
            GroupSettings(), topics=lambda: topics, share_settings=lambda group: settings
        )
        self.runtime = CoordinatorRuntime(kind, logs, clock)
        self.groups = GroupCoordinator(
            self.runtime, lambda: 1, random=Random(1), share_states=self.states
        )
        self.share = self.groups.share

    async def beat(self, epoch: int = 0, member: str = "m") -> HeartbeatResult:
        topics = frozenset({"t"}) if epoch == 0 else None
        return await self.share.heartbeat(
            HeartbeatRequest("g", member, epoch, "client", "/127.0.0.1", None, topics)
        )

    @property
    def group(self) -> ShareGroup:
        return self.runtime._partitions[0].shard.share.groups["g"]

    def initialized(self) -> list[int]:
        topic = self.group.states.initialized.get(TOPIC)
        return [] if topic is None else sorted(topic.partitions)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.groups.close()
    made.runtime.close()
    await settle()


async def test_partitions_get_state_and_then_members(bench: Bench) -> None:
    joined = await bench.beat()
    assert joined.assignment == {}
    await settle()
    assert bench.states.begun == [
        (ShareKey("g", TOPIC, 0), 2, -1), (ShareKey("g", TOPIC, 1), 2, -1),
    ]  # fmt: skip
    assert bench.initialized() == [0, 1]
    bench.now_ms += 1_000
    assert (await bench.beat(2)).assignment == {TOPIC: frozenset({0, 1})}
    await settle()
    assert len(bench.states.begun) == 2


async def test_many_members_and_partitions_at_once() -> None:
    """A thousand join at the same moment, each for one of a thousand partitions in the end."""
    bench = Bench(MANY)
    members = [f"m{number}" for number in range(MANY)]
    try:
        joined = await asyncio.gather(*(bench.beat(member=member) for member in members))
        while len(bench.initialized()) < MANY:
            await asyncio.sleep(0)
        epochs = {member: each.epoch for member, each in zip(members, joined, strict=True)}
        owned: dict[str, set[int]] = {}
        for _ in range(3):
            bench.now_ms += 1_000
            for member in members:
                found = await bench.beat(epochs[member], member)
                epochs[member] = found.epoch
                if found.assignment is not None:
                    owned[member] = set(found.assignment.get(TOPIC, ()))
        assert set(epochs.values()) == {bench.group.epoch}
        assert {len(numbers) for numbers in owned.values()} == {1}
        assert set().union(*owned.values()) == set(range(MANY))
        with pytest.raises(ApiError) as refused:
            await bench.beat(member="one more")
        assert refused.value.code is ErrorCode.group_max_size_reached
    finally:
        bench.groups.close()
        bench.runtime.close()
        await settle()


async def test_what_is_refused_is_asked_for_again(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.states.refused[1] = ErrorCode.coordinator_not_available
    with caplog.at_level(logging.WARNING, "ottla.groups"):
        await bench.beat()
        await settle()
    assert "share group g: 1 partitions have no state yet" in caplog.text
    assert bench.initialized() == [0]
    del bench.states.refused[1]
    await bench.beat(2)
    await settle()
    assert bench.states.begun[2:] == [(ShareKey("g", TOPIC, 1), 3, -1)]
    assert bench.initialized() == [0, 1]


async def test_a_partition_is_asked_about_once_at_a_time(bench: Bench) -> None:
    """A state that is begun again loses what it had: not under the members that have it."""
    bench.states.gate.clear()
    await bench.beat()
    await settle()
    bench.now_ms += 31_000
    assert (await bench.beat(2)).to_initialize is not None
    await settle()
    assert len(bench.states.begun) == 2
    bench.states.gate.set()
    await settle()
    assert (bench.initialized(), len(bench.states.begun)) == ([0, 1], 2)


async def test_the_coordinator_moves_while_share_coordinators_are_asked(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.states.gate.clear()
    await bench.beat()
    await settle()
    bench.runtime.close()
    bench.states.gate.set()
    with caplog.at_level(logging.INFO, "ottla.groups"):
        await settle()
    assert "what has state now is not stored" in caplog.text


async def test_a_group_is_forgotten_before_it_is_deleted(bench: Bench) -> None:
    await bench.beat()
    await settle()
    assert await bench.groups.delete_group("g") is ErrorCode.non_empty_group
    await bench.beat(-1)
    bench.states.refused[1] = ErrorCode.not_coordinator
    with pytest.raises(ApiError, match="not_coordinator"):
        await bench.groups.delete_group("g")
    assert bench.group.states.deleting == {TOPIC: "t"}
    bench.states.refused.clear()
    assert await bench.groups.delete_group("g") is ErrorCode.none
    assert {key.partition for key in bench.states.deleted} == {0, 1}
    assert await bench.groups.delete_group("g") is ErrorCode.group_id_not_found


async def test_a_state_that_a_deletion_has_left_is_deleted_by_the_next_one(bench: Bench) -> None:
    """Though something in its topic has begun since. It would fence the next group of the name."""
    await bench.share.alter_offsets("g", {"t": {0: 5, 1: 6}})
    bench.states.refused[1] = ErrorCode.not_coordinator
    with pytest.raises(ApiError, match="not_coordinator"):
        await bench.groups.delete_group("g")
    assert {key.partition for key in bench.states.there} == {1}
    await bench.share.alter_offsets("g", {"t": {0: 7}})
    assert bench.group.states.deleting == {TOPIC: "t"}
    bench.states.refused.clear()
    assert await bench.groups.delete_group("g") is ErrorCode.none
    assert bench.states.there == {}


async def test_a_topic_that_has_begun_anew_is_not_to_be_deleted(bench: Bench) -> None:
    await bench.share.alter_offsets("g", {"t": {0: 5, 1: 6}})
    bench.states.refused[1] = ErrorCode.not_coordinator
    found = await bench.share.delete_offsets("g", ["t"])
    assert found[TOPIC] is not None
    bench.states.refused.clear()
    await bench.share.alter_offsets("g", {"t": {0: 7}})
    await bench.share.alter_offsets("g", {"t": {1: 8}})
    assert bench.group.states.deleting == {}


def deleting(bench: Bench, what: str) -> asyncio.Task[Any]:
    if what == "group":
        return asyncio.ensure_future(bench.groups.delete_group("g"))
    return asyncio.ensure_future(bench.share.delete_offsets("g", ["t"]))


@pytest.mark.parametrize("what", ["group", "offsets"])
async def test_what_members_need_begins_after_a_deletion_that_is_under_way(
    bench: Bench, what: str
) -> None:
    """Otherwise the deletion takes away the state that the group counts on."""
    await bench.share.alter_offsets("g", {"t": {0: 5, 1: 6}})
    bench.states.deletions.clear()
    deletion = deleting(bench, what)
    await settle()
    joined = await bench.beat()
    assert joined.to_initialize is not None
    await settle()
    assert len(bench.states.begun) == 2
    bench.states.deletions.set()
    await settle()
    assert len(bench.states.deleted) == 2
    assert bench.initialized() == [0, 1]
    assert set(bench.states.there.values()) == {joined.epoch}
    if what == "group":
        assert await deletion is ErrorCode.non_empty_group
    else:
        assert await deletion == {TOPIC: None}


@pytest.mark.parametrize("what", ["group", "offsets"])
async def test_what_begins_is_deleted_afterwards(bench: Bench, what: str) -> None:
    """Otherwise a state is left that fences the next group of this name."""
    await bench.share.alter_offsets("g", {"t": {0: 5, 1: 6}})
    bench.states.gate.clear()
    altering = asyncio.ensure_future(bench.share.alter_offsets("g", {"t": {0: 7}}))
    await settle()
    deletion = deleting(bench, what)
    await settle()
    assert not deletion.done()
    bench.states.gate.set()
    await settle()
    assert await deletion in (ErrorCode.none, {TOPIC: None})
    assert (await altering).errors == {}
    assert bench.states.there == {}
    assert not bench.share._turns._groups


async def test_a_state_that_nobody_waits_for_does_not_begin(bench: Bench) -> None:
    await bench.share.alter_offsets("g", {"t": {0: 5}})
    bench.states.deletions.clear()
    deletion = deleting(bench, "group")
    await settle()
    altering = asyncio.ensure_future(bench.share.alter_offsets("g", {"t": {1: 9}}))
    await settle()
    bench.states.deletions.set()
    assert await deletion is ErrorCode.none
    error = (await altering).errors[TOPIC, 1]
    assert error.code is ErrorCode.coordinator_not_available
    assert bench.states.there == {}


async def test_a_deletion_does_not_wait_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_turns, "WAIT_S", 0.01)
    bench.states.gate.clear()
    beginning = asyncio.ensure_future(bench.share.alter_offsets("g", {"t": {0: 5}}))
    await settle()
    with pytest.raises(ApiError) as refused:
        await bench.groups.delete_group("g")
    assert refused.value.code is ErrorCode.coordinator_not_available
    bench.states.gate.set()
    assert (await beginning).errors == {}
    assert await bench.groups.delete_group("g") is ErrorCode.none


async def test_nothing_begins_while_a_deletion_may_be_late(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take away the state of the next group of this name."""
    monkeypatch.setattr(late_deletions, "LATE_S", 0.05)
    await bench.share.alter_offsets("g", {"t": {0: 5, 1: 6}})
    bench.states.lost_tries = 1
    assert await bench.groups.delete_group("g") is ErrorCode.none
    await bench.beat()
    await settle()
    assert bench.states.there == {}
    await bench.share._late.over("g")
    await settle()
    assert bench.initialized() == [0, 1]
    assert not bench.share._late._until_s


async def test_what_waits_for_a_late_deletion_does_not_wait_twice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_deletions, "LATE_S", 0.05)
    bench.share._late.expect(("f", "g"))
    altering = asyncio.ensure_future(bench.share.alter_offsets("g", {"t": {0: 5}}))
    await asyncio.sleep(0.02)
    bench.share._late.expect(("g",))
    with pytest.raises(ApiError, match="may still take effect"):
        await altering
    await bench.share._late.over("g")
    bench.share._late.expect(("g",))
    assert list(bench.share._late._until_s) == ["g"]


async def test_what_the_coordinator_before_has_begun_to_delete_may_be_deleted_late(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_deletions, "LATE_S", 0.05)
    await bench.share.alter_offsets("g", {"t": {0: 5, 1: 6}})
    bench.states.refused[1] = ErrorCode.not_coordinator
    with pytest.raises(ApiError, match="not_coordinator"):
        await bench.groups.delete_group("g")
    bench.states.refused.clear()
    await bench.share.alter_offsets("g", {"t": {0: 7}})
    assert len(bench.states.begun) == 3, "that one was answered"
    bench.log.leader_epoch += 1
    bench.runtime.elected(0)
    assert await bench.groups.delete_group("g") is ErrorCode.none
    altering = asyncio.ensure_future(bench.share.alter_offsets("g", {"t": {0: 8}}))
    await settle()
    assert bench.states.there == {}
    assert (await altering).errors == {}
    assert list(bench.states.there) == [ShareKey("g", TOPIC, 0)]


async def test_a_coordinator_that_lost_the_group_asks_no_more(bench: Bench) -> None:
    await bench.share.alter_offsets("g", {"t": {0: 5}})
    assert bench.states.is_wanted()
    bench.runtime.resigned(0)
    assert not bench.states.is_wanted()


async def test_offsets_are_altered(bench: Bench) -> None:
    bench.states.refused[1] = ErrorCode.unknown_server_error
    altered = await bench.share.alter_offsets("g", {"t": {0: 5, 1: 6, 9: 7}, "x": {0: 1}})
    assert bench.states.begun == [
        (ShareKey("g", TOPIC, 0), 1, 5), (ShareKey("g", TOPIC, 1), 1, 6),
    ]  # fmt: skip
    assert {partition: error.code for partition, error in altered.errors.items()} == {
        (TOPIC, 1): ErrorCode.unknown_server_error
    }
    assert altered.unknown == {("t", 9), ("x", 0)}
    assert bench.initialized() == [0]
    with pytest.raises(ApiError) as refused:
        await bench.share.alter_offsets("", {})
    assert refused.value.code is ErrorCode.invalid_group_id


async def test_offsets_cannot_be_altered_while_their_state_begins(bench: Bench) -> None:
    bench.states.gate.clear()
    await bench.beat()
    await settle()
    await bench.beat(-1)
    altering = asyncio.ensure_future(bench.share.alter_offsets("g", {"t": {0: 5}}))
    await settle()
    assert altering.done()
    error = altering.result().errors[TOPIC, 0]
    assert error.code is ErrorCode.coordinator_not_available
    bench.states.gate.set()
    await settle()
    assert [offset for _, _, offset in bench.states.begun] == [-1, -1]


async def test_offsets_are_deleted(bench: Bench) -> None:
    await bench.share.alter_offsets("g", {"t": {0: 5, 1: 6}})
    bench.states.refused[1] = ErrorCode.not_coordinator
    found = await bench.share.delete_offsets("g", ["t", "x"])
    error = found[TOPIC]
    assert error is not None
    assert error.code is ErrorCode.not_coordinator
    bench.states.refused.clear()
    assert await bench.share.delete_offsets("g", ["t", "x"]) == {TOPIC: None}
    assert await bench.share.delete_offsets("g", ["t"]) == {}
    for group, code in (("h", ErrorCode.group_id_not_found), ("", ErrorCode.invalid_group_id)):
        with pytest.raises(ApiError) as refused:
            await bench.share.delete_offsets(group, ["t"])
        assert refused.value.code is code


async def test_where_partitions_stand(bench: Bench) -> None:
    await bench.share.alter_offsets("g", {"t": {0: 5, 1: 6}})
    assert await bench.share.initialized("g") == {TOPIC: frozenset({0, 1})}
    assert await bench.share.initialized("h") == {}
    bench.states.refused[1] = ErrorCode.not_coordinator
    found = await bench.share.summaries("g", {TOPIC: (0, 1, 1)})
    assert found[TOPIC, 0] == SUMMARY
    error = found[TOPIC, 1]
    assert isinstance(error, ApiError)
    assert error.code is ErrorCode.not_coordinator
