"""Which message a journey request means, and who must be asked instead."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ottla.controller.image import NO_LEADER, ClusterImage, PartitionState, TopicImage
from ottla.tracing.find_message import (
    JourneyError,
    MessageQuery,
    find_message,
    led_elsewhere,
    led_partitions,
    newest_offset,
    offset_ranges,
)

OWN = 1


def partition(index: int, start: int = 0, end: int = 0, newest_ms: int = 0) -> Any:
    """With one segment, whose last batch has this largest timestamp."""
    segment = SimpleNamespace(size_bytes=end - start, largest_timestamp=newest_ms)
    log = SimpleNamespace(start_offset=start, end_offset=end, segments=[segment])
    return SimpleNamespace(index=index, log=log)


def cluster_of(*leaders: int, held: tuple[Any, ...] = ()) -> Any:
    """Topic t with these leaders; this broker holds some of its partitions."""
    states = tuple(PartitionState(leader, 0, (1, 2), (1, 2), 0) for leader in leaders)
    image = ClusterImage("c")
    image.topics["t"] = TopicImage("t", UUID(int=1), states, {})
    image.topics["a"] = TopicImage("a", UUID(int=2), states, {})
    return SimpleNamespace(
        config=SimpleNamespace(id=OWN),
        image=image,
        partitions=SimpleNamespace(of_topic=lambda topic: list(held)),
    )


def query(topic: str = "t", **given: Any) -> MessageQuery:
    nothing = {"partition": None, "offset": None, "key": None, "latest": False}
    return MessageQuery(topic, **{**nothing, **given})


def refusal(call: Any, *given: Any) -> JourneyError:
    with pytest.raises(JourneyError) as refused:
        call(*given)
    return refused.value


def test_the_leader_answers_for_its_partitions_in_order() -> None:
    held = (partition(2), partition(0), partition(1), partition(9))
    cluster = cluster_of(OWN, 2, OWN, held=held)
    assert [each.index for each in led_partitions(query(), cluster)] == [0, 2]
    assert [each.index for each in led_partitions(query(partition=2), cluster)] == [2]
    assert led_elsewhere(query(), cluster) == [1]
    assert led_elsewhere(query(partition=1), cluster) == []


def test_another_leader_is_named() -> None:
    cluster = cluster_of(2, NO_LEADER, held=(partition(0), partition(1)))
    error = refusal(led_partitions, query(partition=0), cluster)
    assert (error.code, error.more) == ("not_leader", {"leader": 2})
    error = refusal(led_partitions, query(partition=1), cluster)
    assert (error.code, error.more, "has no leader" in str(error)) == (
        "not_leader",
        {"leader": None},
        True,
    )
    assert refusal(led_partitions, query(), cluster).code == "not_leader"


def test_what_does_not_exist_is_answered_with_what_does() -> None:
    cluster = cluster_of(OWN, held=(partition(0, 3, 8),))
    error = refusal(led_partitions, query("flight"), cluster)
    assert (error.code, error.more) == ("unknown_topic", {"topics": ["a", "t"]})
    assert led_elsewhere(query("flight"), cluster) == []
    error = refusal(led_partitions, query(partition=1), cluster)
    assert str(error) == "topic 't' has no partition 1, it has only partition 0"
    assert error.more == {"partitions": [{"partition": 0, "start_offset": 3, "end_offset": 8}]}
    cluster = cluster_of(OWN, OWN)
    assert "it has partitions 0 to 1" in str(refusal(led_partitions, query(partition=2), cluster))


async def test_an_offset_needs_a_partition_if_there_are_several() -> None:
    first = partition(0, 0, 9)
    one, two = cluster_of(OWN), cluster_of(OWN, 2)
    assert await find_message(query(offset=4), [first], one) == (first, 4, None)
    assert await find_message(query(offset=4, partition=0), [first], two) == (first, 4, None)
    for wanted, message in (
        (query(offset=4), "give the partition of offset 4"),
        (query(), "give an offset, a key, or latest"),
    ):
        with pytest.raises(JourneyError, match=message) as refused:
            await find_message(wanted, [first], two)
        assert refused.value.code == "which_offset"
        assert refused.value.more == {"partitions": offset_ranges([first])}


async def test_the_latest_message_of_an_empty_topic() -> None:
    with pytest.raises(JourneyError, match="topic 't' has no records") as refused:
        await find_message(query(latest=True), [partition(0, 5, 5)], cluster_of(OWN))
    assert refused.value.code == "empty"


def markers_from(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """The log has transaction markers from this offset on."""

    async def find_location(log: Any, offset: int) -> Any:
        header = SimpleNamespace(is_control=offset >= first, base_offset=offset)
        return SimpleNamespace(header=header)

    monkeypatch.setattr("ottla.tracing.find_message.find_location", find_location)


@pytest.mark.parametrize(("first", "newest"), [(9, 4), (4, 3), (2, 1), (0, 4)])
async def test_the_latest_message_is_no_transaction_marker(
    monkeypatch: pytest.MonkeyPatch, first: int, newest: int
) -> None:
    """Unless there is nothing else."""
    markers_from(monkeypatch, first)
    assert await newest_offset(partition(0, 0, 5).log) == newest


async def test_the_latest_message_is_that_of_the_newest_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "ottla.tracing.find_message.largest_timestamp", lambda segment: segment.largest_timestamp
    )
    markers_from(monkeypatch, 3)
    empty, old, new = partition(0, 7, 7, 900), partition(1, 0, 5, 100), partition(2, 0, 3, 200)
    found = await find_message(query(latest=True), [empty, old, new], cluster_of(OWN, OWN, OWN))
    assert found == (new, 2, None)
