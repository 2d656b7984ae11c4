"""A broker's own requests to the controller: to itself, to another broker, and to none."""

from typing import Any

import pytest

from ottla.controller.image import NO_LEADER, ControllerChanged
from ottla.controller.topics import NewTopic
from ottla.network.peer import PeerError
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages import messages_of

ALLOCATE = messages_of(67, 0, "request")


async def two(neighbours: Any) -> tuple[Any, Any]:
    """The controller and another broker."""
    return await neighbours.start(1), await neighbours.start(2)


async def test_blocks_of_producer_ids_do_not_overlap(neighbours: Any, eventually: Any) -> None:
    first, second = await two(neighbours)
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    blocks = [await node.client.reserve_producer_ids() for node in (first, second, first)]
    assert blocks == [(0, 1000), (1000, 2000), (2000, 3000)]


async def test_topics_are_created_from_any_broker_and_may_exist(
    neighbours: Any, eventually: Any
) -> None:
    first, second = await two(neighbours)
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    wanted = [
        NewTopic("t", 3, 2, configs=(("retention.ms", "5"),)),
        NewTopic("a b"),
    ]
    for _ in range(2):
        outcomes = await second.client.create_missing_topics(wanted)
        assert not outcomes["t"].failed
        assert outcomes["a b"].code is ErrorCode.invalid_topic_exception
    topic = first.image.topics["t"]
    assert len(topic.partitions) == 3
    assert {len(state.replicas) for state in topic.partitions} == {2}
    assert topic.overrides == {"retention.ms": "5"}


@pytest.mark.parametrize("controller_id", [NO_LEADER, 3])
async def test_without_a_controller_clients_get_a_retriable_error(
    neighbours: Any, controller_id: int
) -> None:
    _, second = await two(neighbours)
    await second.membership.fetcher.close()
    await second.view.apply([ControllerChanged(controller_id, 9)])
    request = ALLOCATE.AllocateProducerIdsRequest(broker_id=2, broker_epoch=1)
    with pytest.raises(PeerError):
        await second.client.ask(request)
    with pytest.raises(ApiError) as caught:
        await second.client.reserve_producer_ids()
    assert caught.value.code is ErrorCode.coordinator_load_in_progress
    outcomes = await second.client.create_missing_topics([NewTopic("t")])
    assert outcomes["t"].code is ErrorCode.unknown_topic_or_partition


async def test_a_resigned_controller_is_like_no_controller(neighbours: Any) -> None:
    first = await neighbours.start(1, live=False)
    second = await neighbours.start(2, live=False)
    first.controller.resign("for the test")
    for node in (first, second):
        with pytest.raises(ApiError) as caught:
            await node.client.reserve_producer_ids()
        assert caught.value.code is ErrorCode.coordinator_load_in_progress
        outcomes = await node.client.create_missing_topics([NewTopic("t")])
        assert outcomes["t"].code is ErrorCode.unknown_topic_or_partition
