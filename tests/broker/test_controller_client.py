"""A broker's own requests to the controller: on itself, on another, and where there is none."""

from typing import Any

import pytest

from ottla.broker.controller_client import (
    ask_controller,
    create_missing_topics,
    reserve_producer_ids,
)
from ottla.controller.image import NO_LEADER, ControllerChanged
from ottla.controller.topics import NewTopic
from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of

ALLOCATE = messages_of(67, 0, "request")


async def two(neighbours: Any) -> tuple[Any, Any]:
    """The controller and another broker."""
    return await neighbours.start(1), await neighbours.start(2)


async def test_blocks_of_producer_ids_differ_whoever_asks(neighbours: Any) -> None:
    first, second = await two(neighbours)
    blocks = [await reserve_producer_ids(node) for node in (first, second, first)]
    assert blocks == [(0, 1000), (1000, 2000), (2000, 3000)]


async def test_topics_are_made_from_any_broker_and_may_be_there(
    neighbours: Any, eventually: Any
) -> None:
    first, second = await two(neighbours)
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    wanted = [
        NewTopic("t", 3, 2, configs=(("retention.ms", "5"),)),
        NewTopic("a b"),
    ]
    for _ in range(2):
        outcomes = await create_missing_topics(second, wanted)
        assert not outcomes["t"].failed
        assert outcomes["a b"].code is ErrorCode.invalid_topic_exception
    topic = first.image.topics["t"]
    assert len(topic.partitions) == 3
    assert {len(state.replicas) for state in topic.partitions} == {2}
    assert topic.overrides == {"retention.ms": "5"}


@pytest.mark.parametrize("controller_id", [NO_LEADER, 3])
async def test_without_a_controller_clients_are_told_to_ask_again(
    neighbours: Any, controller_id: int
) -> None:
    _, second = await two(neighbours)
    await second.membership.fetcher.close()
    await second.view.tell([ControllerChanged(controller_id, 9)])
    request = ALLOCATE.AllocateProducerIdsRequest(broker_id=2, broker_epoch=1)
    with pytest.raises(PeerError):
        await ask_controller(second, request)
    with pytest.raises(ApiError) as caught:
        await reserve_producer_ids(second)
    assert caught.value.code is ErrorCode.coordinator_load_in_progress
    outcomes = await create_missing_topics(second, [NewTopic("t")])
    assert outcomes["t"].code is ErrorCode.unknown_topic_or_partition


async def test_a_controller_that_resigned_is_as_none(neighbours: Any) -> None:
    first = await neighbours.start(1, live=False)
    second = await neighbours.start(2, live=False)
    first.controller.resign("for the test")
    for node in (first, second):
        with pytest.raises(ApiError) as caught:
            await reserve_producer_ids(node)
        assert caught.value.code is ErrorCode.coordinator_load_in_progress
        outcomes = await create_missing_topics(node, [NewTopic("t")])
        assert outcomes["t"].code is ErrorCode.unknown_topic_or_partition
