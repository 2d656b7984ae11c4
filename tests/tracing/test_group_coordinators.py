"""What the coordinators of groups say: all of them, one that is silent, and one that moved."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.api.journey_groups import handle_json
from ottla.groups.stored import OffsetCommitValue
from ottla.journey.facts import KnownGroups, Position
from ottla.network.peer import PeerError
from ottla.protocol.errors import DecodeError
from ottla.protocol.internal_topics import OFFSETS_TOPIC
from ottla.protocol.versions import JOURNEY_GROUPS
from ottla.timelines.step import Kind, Step, Versions
from ottla.tracing import group_answer
from ottla.tracing.group_answer import (
    GroupsOfPartition,
    answer_document,
    own_groups,
    read_answer,
)
from ottla.tracing.group_coordinators import find_groups, steps_of_some

STEP = Step(Kind.GROUP, "far", 3000, 3050, 0, 5, 9)
DELIVERED = Step(Kind.DELIVERED, ("p", "q", "/t"), 4000, 4000, 0, 9, 9, False, Versions(3, 3, 9, 9))


def value(offset: int, at_ms: int = 2000, metadata: str = "m") -> OffsetCommitValue:
    return OffsetCommitValue(offset, 4, metadata, at_ms)


class Groups:
    """A coordinator of some partitions of `__consumer_offsets`."""

    def __init__(self, **by_shard: dict[str, OffsetCommitValue]) -> None:
        self.by_shard = {int(name[1:]): found for name, found in by_shard.items()}

    async def offsets_of(self, topic: str, partition: int, within_ms: int) -> dict[int, Any]:
        assert (topic, partition) == ("t", 0)
        return dict(self.by_shard)

    async def share_groups_of(self, topic_id: UUID, partition: int) -> list[str]:
        assert (topic_id, partition) == (UUID(int=7), 0)
        return [f"shared-{number}" for number in self.by_shard]


class Brokers:
    """Broker 1 asks broker 2, which has the step of a group; `leaders` of `__consumer_offsets`."""

    def __init__(self, own: Groups, other: Groups | None, *leaders: int) -> None:
        states = [SimpleNamespace(leader=leader) for leader in leaders]
        topic = SimpleNamespace(partitions=states)
        self.config = SimpleNamespace(id=1)
        self.image: Any = SimpleNamespace(
            brokers={1: None, 2: None},
            topic={OFFSETS_TOPIC: topic, "t": SimpleNamespace(topic_id=UUID(int=7))}.get,
        )
        self.groups: Any = own
        self.partitions: Any = SimpleNamespace(get=lambda *_: None, of_topic=lambda _: ())
        self.timelines: Any = SimpleNamespace(history_of_groups=self.of_groups)
        self.peers: Any = SimpleNamespace(peer=lambda number, purpose: self)
        self.other = other
        self.asked = 0

    async def ask_json(self, key: int, request: dict[str, Any], timeout_ms: int) -> Any:
        assert key == JOURNEY_GROUPS
        assert 0 <= timeout_ms <= 1000
        self.asked += 1
        if self.other is None:
            raise PeerError("broker 2 did not answer")
        replica = SimpleNamespace(timeline="own")
        broker = SimpleNamespace(
            config=SimpleNamespace(id=2),
            groups=self.other,
            image=self.image,
            partitions=SimpleNamespace(get=lambda *_: replica, of_topic=lambda _: ()),
            timelines=SimpleNamespace(history=self.history, history_of_groups=self.of_groups),
        )
        context: Any = SimpleNamespace(broker=broker)
        return await handle_json(request, context)

    async def of_groups(self, logs: Any, topic_id: UUID, partition: int) -> list[Step]:
        """What both recorded without a replica of the partition."""
        assert (topic_id, partition) == (UUID(int=7), 0)
        return [STEP._replace(name="without a replica")]

    async def history(self, timeline: str, offset: int) -> Any:
        return SimpleNamespace(steps=[STEP, DELIVERED, STEP._replace(kind=Kind.END, name=())])


async def test_every_coordinator_tells_positions_and_steps() -> None:
    brokers: Any = Brokers(Groups(s0={"near": value(3)}), Groups(s1={"far": value(9)}), 1, 2)
    found = await find_groups("t", 0, 5, brokers)
    assert found.positions == {
        "near": Position(3, "", 4, 2000, 1),
        "far": Position(9, "", 4, 2000, 2),
    }
    # Those of the other broker are by its clock.
    assert found.steps == (
        STEP._replace(name="without a replica"),
        STEP._replace(broker=2),
        DELIVERED._replace(broker=2),
        STEP._replace(name="without a replica", broker=2),
    )
    assert found.known == KnownGroups()
    assert found.known.is_complete
    assert found.share_groups == ("shared-0", "shared-1")


async def test_only_some_brokers_are_asked_for_earlier_steps() -> None:
    brokers: Any = Brokers(Groups(s0={}), Groups(s1={}), 1, 2)
    assert await steps_of_some("t", 0, 5, {7}, brokers) == ()
    assert brokers.asked == 0
    told = await steps_of_some("t", 0, 5, {2, 7}, brokers)
    assert DELIVERED._replace(broker=2) in told
    assert brokers.asked == 1


async def test_a_coordinator_that_does_not_answer_is_named() -> None:
    brokers: Any = Brokers(Groups(s0={"near": value(3)}), None, 1, 2, -1)
    found = await find_groups("t", 0, 5, brokers)
    assert set(found.positions) == {"near"}
    assert found.known == KnownGroups(unanswered=(2,), without_leader=1)
    assert not found.known.is_complete


async def test_a_broker_that_coordinates_nothing_need_not_answer() -> None:
    brokers: Any = Brokers(Groups(s0={}), None, 1)
    assert (await find_groups("t", 0, 5, brokers)).known.is_complete


async def test_what_a_coordinator_still_loads_is_asked_for_again() -> None:
    other = Groups(s1={"far": value(9)})
    brokers: Any = Brokers(Groups(s0={}), other, 1, 2, 2)
    asking = asyncio.create_task(find_groups("t", 0, 5, brokers))
    while not brokers.asked:
        await asyncio.sleep(0)
    other.by_shard[2] = {"late": value(4)}
    found = await asking
    assert set(found.positions) == {"far", "late"}
    assert found.known.is_complete
    del other.by_shard[2]
    assert (await find_groups("t", 0, 5, brokers)).known.unanswered == (2,)


async def test_of_a_group_that_moved_the_newer_position_counts() -> None:
    own, other = Groups(s0={"g": value(9, 3000)}), Groups(s0={"g": value(3)})
    found = await find_groups("t", 0, 5, Brokers(own, other, 1))  # type: ignore[arg-type]
    assert found.positions["g"].offset == 9


async def test_groups_above_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_answer, "MAX_GROUPS", 2)
    many = {f"g{number}": value(number, 1000 + number) for number in range(5)}
    brokers: Any = Brokers(Groups(s0=many), None, 1)
    found = await find_groups("t", 0, 5, brokers)
    assert set(found.positions) == {"g3", "g4"}
    assert found.known == KnownGroups(left_out=3)
    monkeypatch.setattr(group_answer, "MAX_ANSWER_CHARS", 3)
    assert (await own_groups("t", 0, 5, brokers)).left_out == 4


def test_what_a_pipeline_reports_is_told() -> None:
    told = '{"ottla.pipeline": 1, "query": "q", "batch": 0}'
    steps = [STEP._replace(broker=2)]
    steps = [STEP._replace(broker=2)]
    known = GroupsOfPartition(frozenset({3}), {"p": Position(9, told, 4, 2000, 2)}, 1, steps)
    assert read_answer(answer_document(known), 2) == known


@pytest.mark.parametrize(
    "wrong",
    [
        {"journey_groups": 2},
        {"positions": [["g"]]},
        {"positions": None},
        {"shards": ["x"]},
        {"steps": "no base64!"},
    ],
)
def test_another_answer_is_none(wrong: dict[str, Any]) -> None:
    sound = answer_document(GroupsOfPartition(frozenset(), {}, 0, ()))
    with pytest.raises(ValueError, match="broker 2"):
        read_answer(sound | wrong, 2)


@pytest.mark.parametrize(
    "wrong", [{"journey_groups": 2}, {"topic": 1}, {"partition": "0"}, {"offset": None}]
)
async def test_another_request_is_refused(wrong: dict[str, Any]) -> None:
    request = {"journey_groups": 1, "topic": "t", "partition": 0, "offset": 5}
    context: Any = SimpleNamespace(broker=None)
    with pytest.raises(DecodeError):
        await handle_json(request | wrong, context)
