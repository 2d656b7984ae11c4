"""The order of the image and its subscribers."""

import asyncio

import pytest

from ottla.cluster.cluster_view import DELTAS_A_SLICE, ClusterView
from ottla.config import BrokerConfig
from ottla.controller.image import (
    EVERY_BROKER,
    NO_CONFIG,
    BrokerConfigChanged,
    BrokerVanished,
    ConfigImage,
    MetadataDelta,
)

TOO_HIGH = BrokerConfigChanged(
    EVERY_BROKER, ConfigImage({"log.cleaner.max.compaction.lag.ms": "5"}, 0)
)


async def test_subscribers_see_each_delta_in_the_image_but_not_the_next() -> None:
    view = ClusterView(BrokerConfig())
    seen: list[tuple[MetadataDelta, int]] = []
    view.subscribe(lambda delta: seen.append((delta, view.image.version)))
    delta = [BrokerVanished(number) for number in range(3)]
    await view.apply(delta)
    assert seen == [(each, number + 1) for number, each in enumerate(delta)]


async def test_concurrent_applies_do_not_interleave() -> None:
    view = ClusterView(BrokerConfig())
    seen: list[MetadataDelta] = []

    async def slow(delta: MetadataDelta) -> None:
        await asyncio.sleep(0)
        seen.append(delta)

    view.subscribe(slow)
    first, second = ([BrokerVanished(number + side) for number in range(3)] for side in (10, 20))
    await asyncio.gather(view.apply(first), view.apply(second))
    assert seen == first + second


async def test_settings_are_applied_before_subscribers_are_notified() -> None:
    config = BrokerConfig({"node.id": "2", "message.max.bytes": "1000"})
    view = ClusterView(config)
    seen: list[int] = []
    view.subscribe(lambda delta: seen.append(config.message_max_bytes))
    for resource, text in ((EVERY_BROKER, "2000"), ("2", "3000"), ("3", "4000")):
        values = ConfigImage({"message.max.bytes": text}, 0)
        await view.apply([BrokerConfigChanged(resource, values)])
    await view.apply([BrokerConfigChanged("2", NO_CONFIG)])
    assert seen == [2000, 3000, 3000, 2000]


async def test_conflicting_settings_do_not_block_deltas(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = BrokerConfig({"log.cleaner.min.compaction.lag.ms": "9"})
    view = ClusterView(config)
    seen: list[MetadataDelta] = []
    view.subscribe(seen.append)
    await view.apply([TOO_HIGH, BrokerVanished(7)])
    assert seen == [TOO_HIGH, BrokerVanished(7)]
    assert caplog.text.count("must not be above") == 1
    caplog.clear()
    good = BrokerConfigChanged(
        EVERY_BROKER, ConfigImage({**TOO_HIGH.config.values, "message.max.bytes": "5"}, 1)
    )
    await view.apply([good])
    assert config.message_max_bytes == 5
    assert "must not be above" not in caplog.text


async def test_others_run_while_many_deltas_are_applied() -> None:
    """Another broker may have deleted thousands of topics."""
    view, turns = ClusterView(BrokerConfig()), 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await view.apply([BrokerVanished(1)] * 10 * DELTAS_A_SLICE)
    beside.cancel()
    assert turns == 9
