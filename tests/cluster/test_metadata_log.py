"""The response to a broker, by the version that it has."""

import asyncio
import json
from uuid import UUID

from ottla.cluster.metadata_log import (
    MAX_ANSWER_BYTES,
    MAX_IN_ANSWER,
    MAX_KEPT,
    UNKNOWN_VERSION,
    MetadataLog,
)
from ottla.controller.delta_text import decode_delta, decode_snapshot, encode_delta
from ottla.controller.differences import differences
from ottla.controller.image import (
    BrokerVanished,
    ClusterImage,
    PartitionState,
    TopicCreated,
    TopicImage,
)
from ottla.controller.plan import decided

TOPIC = TopicImage("t", UUID(int=1), (), {})


def log_with(count: int) -> tuple[ClusterImage, MetadataLog]:
    image = ClusterImage("c")
    metadata_log = MetadataLog(image)
    for number in range(count):
        append(image, metadata_log, number)
    return image, metadata_log


def append(image: ClusterImage, metadata_log: MetadataLog, number: int) -> None:
    delta = BrokerVanished(number)
    image.apply(delta)
    metadata_log.append(delta)


async def test_an_up_to_date_broker_gets_nothing() -> None:
    _, metadata_log = log_with(3)
    assert await metadata_log.since(3) == {"version": 3, "deltas": []}


async def test_a_broker_that_is_behind_gets_the_missing_deltas() -> None:
    _, metadata_log = log_with(3)
    assert await metadata_log.since(1) == {
        "version": 3,
        "deltas": [encode_delta(BrokerVanished(1)), encode_delta(BrokerVanished(2))],
    }
    assert len((await metadata_log.since(0))["deltas"]) == 3


async def test_many_deltas_take_several_responses() -> None:
    image, metadata_log = log_with(MAX_IN_ANSWER + 1)
    first = await metadata_log.since(0)
    assert len(first["deltas"]) == MAX_IN_ANSWER
    rest = await metadata_log.since(first["version"])
    assert [decode_delta(each, image) for each in rest["deltas"]] == [BrokerVanished(MAX_IN_ANSWER)]
    assert rest["version"] == metadata_log.version


async def test_large_deltas_take_several_responses() -> None:
    """Their JSON is written and read without a pause."""
    image = ClusterImage("c")
    metadata_log = MetadataLog(image)
    large, followed = ClusterImage("c"), 0
    for number in range(60):
        # One of them has more than a response may have.
        count = 10_000 if number == 30 else 500
        states = tuple(PartitionState(1, epoch, (1, 2), (1, 2), 7) for epoch in range(count))
        delta = TopicCreated(TopicImage(f"t{number}", UUID(int=number), states, {}))
        image.apply(delta)
        metadata_log.append(delta)
    version = 0
    while version < metadata_log.version:
        answer = await metadata_log.since(version)
        deltas = answer["deltas"]
        assert len(deltas) == 1 or len(json.dumps(deltas)) <= MAX_ANSWER_BYTES + 2 * len(deltas)
        for each in deltas:
            large.apply(decode_delta(each, large))
        version, followed = answer["version"], followed + 1
    assert differences(large, image) == []
    assert followed < 20


async def test_a_broker_that_starts_or_is_out_of_range_gets_a_snapshot() -> None:
    image, metadata_log = log_with(MAX_KEPT + 2)
    delta = TopicCreated(TOPIC)
    image.apply(delta)
    metadata_log.append(delta)
    for version in (UNKNOWN_VERSION, 0, 2, metadata_log.version + 1):
        answer = await metadata_log.since(version)
        assert answer["version"] == metadata_log.version
        assert "deltas" not in answer
        assert differences(image, decided(decode_snapshot(answer["snapshot"]))) == []
    assert len((await metadata_log.since(3))["deltas"]) == MAX_IN_ANSWER


async def test_a_new_tenure_does_not_know_older_versions() -> None:
    image, _ = log_with(3)
    metadata_log = MetadataLog(image)
    assert "snapshot" in await metadata_log.since(2)
    assert await metadata_log.since(3) == {"version": 3, "deltas": []}


async def test_deltas_wake_waiting_fetches() -> None:
    image, metadata_log = log_with(1)
    waiting = asyncio.create_task(metadata_log.wait_past(1, 60_000))
    while metadata_log.waiters is None:
        await asyncio.sleep(0)
    append(image, metadata_log, 7)
    await asyncio.wait_for(waiting, 10)
    assert metadata_log.waiters is None


async def test_the_end_of_the_tenure_wakes_waiting_fetches() -> None:
    _, metadata_log = log_with(1)
    waiting = asyncio.create_task(metadata_log.wait_past(1, 60_000))
    while metadata_log.waiters is None:
        await asyncio.sleep(0)
    metadata_log.close()
    await asyncio.wait_for(waiting, 10)
    await asyncio.wait_for(metadata_log.wait_past(1, 60_000), 10)


async def test_a_broker_that_is_behind_does_not_wait() -> None:
    _, metadata_log = log_with(2)
    await asyncio.wait_for(metadata_log.wait_past(1, 60_000), 10)
    await asyncio.wait_for(metadata_log.wait_past(UNKNOWN_VERSION, 60_000), 10)
    await asyncio.wait_for(metadata_log.wait_past(2, 1), 10)
