import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ottla.broker.controller import (
    OFFSETS_TOPIC,
    Controller,
    StartError,
    random_cluster_id,
    random_id,
)
from ottla.config.broker import BrokerConfig
from ottla.config.error import ConfigError
from ottla.config.listener import Endpoint
from ottla.controller import layout
from ottla.controller.config_changes import ConfigChange, ResourceChange, ResourceType
from ottla.controller.coordination import Coordination
from ottla.controller.deletion import UnwantedTopic
from ottla.controller.elections import ElectionType
from ottla.controller.embedded import EmbeddedCoordination, EmbeddedTree
from ottla.controller.embedded_store import StoreError
from ottla.controller.image import EVERY_BROKER, News, TopicCreated, TopicDeleted
from ottla.controller.topics import MorePartitions, NewTopic
from ottla.protocol.errors import ApiError, ErrorCode

ENDPOINTS = (Endpoint("PLAINTEXT", "127.0.0.1", 9092),)


def controller_of(
    session: Coordination, config: BrokerConfig | None = None, cluster_id: str | None = None
) -> Controller:
    return Controller(
        session,
        config or BrokerConfig(),
        now_ms=lambda: 1_000,
        cluster_id=cluster_id,
        placement_start=lambda: 0,
    )


@asynccontextmanager
async def running(
    folder: Path | None = None, config: BrokerConfig | None = None, cluster_id: str | None = None
) -> AsyncIterator[Controller]:
    tree = EmbeddedTree(folder)
    controller = controller_of(await tree.connect(), config, cluster_id)
    try:
        await controller.start(ENDPOINTS)
        yield controller
        await controller.close()
    finally:
        await tree.close()


async def test_the_broker_registers_and_leads(tmp_path: Path) -> None:
    tree = EmbeddedTree(tmp_path)
    controller = controller_of(await tree.connect())
    await controller.start(ENDPOINTS)
    assert controller.image.brokers[1].endpoints == ENDPOINTS
    assert controller.image.controller_id == 1
    assert controller.image.controller_epoch == 1
    observer = await tree.connect()
    nodes = await observer.read_tree("/")
    assert nodes["/controller"].owner == nodes["/brokers/ids/1"].owner != 0
    assert nodes["/controller_epoch"].data == b"1"
    await controller.close()
    assert await observer.exists("/brokers/ids/1") is None
    assert await observer.exists("/controller") is None
    await tree.close()


async def test_everything_is_there_again_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as controller:
        results = await controller.create_topics(
            [NewTopic("t", 3, 1, configs=(("retention.ms", "5"),))]
        )
        assert not results[0].outcome.failed
        await controller.add_partitions([MorePartitions("t", 4)])
        await controller.ensure_offsets_topic()
        assert await controller.next_producer_ids() == (0, 1000)
        before = dict(controller.image.topics)
        cluster_id = controller.image.cluster_id
    async with running(tmp_path, cluster_id=cluster_id) as controller:
        assert controller.image.topics == before
        assert controller.image.cluster_id == cluster_id
        assert controller.image.controller_epoch == 2
        assert await controller.next_producer_ids() == (1000, 2000)


async def test_subscribers_hear_after_the_image_and_before_the_reply() -> None:
    async with running() as controller:
        heard: list[News] = []

        def at_once(news: News) -> None:
            heard.append(news)
            if isinstance(news, TopicCreated):
                assert controller.image.topic(news.topic.name) == news.topic

        async def later(news: News) -> None:
            await asyncio.sleep(0.01)
            heard.append(news)

        controller.subscribe(at_once)
        controller.subscribe(later)
        await controller.create_topics([NewTopic("t", 1, 1)])
        assert [type(news) for news in heard] == [TopicCreated, TopicCreated]
        await controller.delete_topics([UnwantedTopic("t")])
        assert [type(news) for news in heard[2:]] == [TopicDeleted, TopicDeleted]
        await controller.create_topics([NewTopic("t", 1, 1)], validate_only=True)
        await controller.create_topics([NewTopic("t", 0, 1)])
        assert len(heard) == 4


async def test_a_caller_that_goes_away_does_not_stop_its_plan() -> None:
    async with running() as controller:
        task = asyncio.create_task(controller.create_topics([NewTopic("t", 1, 1)]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await controller.create_topics([NewTopic("u", 1, 1)])
        assert set(controller.image.topics) == {"t", "u"}


async def test_requests_at_once_come_one_after_another() -> None:
    async with running() as controller:
        results = await asyncio.gather(
            *(controller.create_topics([NewTopic("t", 1, 1)]) for _ in range(5))
        )
        codes = sorted(result[0].outcome.code for result in results)
        assert codes == [ErrorCode.none, *[ErrorCode.topic_already_exists] * 4]
        blocks = await asyncio.gather(*(controller.next_producer_ids() for _ in range(5)))
        assert sorted(first for first, _ in blocks) == [0, 1000, 2000, 3000, 4000]


async def test_auto_creation() -> None:
    async with running(config=BrokerConfig({"num.partitions": "3"})) as controller:
        await controller.create_topics([NewTopic("there", 1, 1)])
        names = ["new", "new", "there", "a b", "__transaction_state"]
        outcomes = await controller.auto_create(names)
        assert {name: outcome.code for name, outcome in outcomes.items()} == {
            "new": ErrorCode.none,
            "there": ErrorCode.none,
            "a b": ErrorCode.invalid_topic_exception,
            "__transaction_state": ErrorCode.unknown_topic_or_partition,
        }
        assert len(controller.image.topics["new"].partitions) == 3
        assert await controller.auto_create([]) == {}


@pytest.mark.parametrize(
    ("segment_bytes", "setting"),
    [("104857600", "segment.bytes"), ("1000", "internal.segment.bytes")],
)
async def test_the_offsets_topic_is_compacted(segment_bytes: str, setting: str) -> None:
    config = BrokerConfig(
        {"offsets.topic.num.partitions": "7", "offsets.topic.segment.bytes": segment_bytes}
    )
    async with running(config=config) as controller:
        assert not (await controller.ensure_offsets_topic()).failed
        assert not (await controller.ensure_offsets_topic()).failed
        topic = controller.image.topics[OFFSETS_TOPIC]
        assert len(topic.partitions) == 7
        assert topic.is_internal
        assert topic.overrides == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            setting: segment_bytes,
        }


async def test_dynamic_settings_are_in_force_and_kept(tmp_path: Path) -> None:
    config = BrokerConfig({"message.max.bytes": "1000"})
    change = ResourceChange(
        ResourceType.BROKER, EVERY_BROKER, (ConfigChange("message.max.bytes", "2000"),)
    )
    async with running(tmp_path, config) as controller:
        results = await controller.alter_configs([change], incremental=True)
        assert not results[0].outcome.failed
        assert config.message_max_bytes == 2000
        validated = await controller.alter_configs(
            [ResourceChange(ResourceType.BROKER, "1", (ConfigChange("message.max.bytes", "3"),))],
            incremental=True,
            validate_only=True,
        )
        assert not validated[0].outcome.failed
        assert config.message_max_bytes == 2000
    config = BrokerConfig({"message.max.bytes": "1000"})
    async with running(tmp_path, config):
        assert config.message_max_bytes == 2000


async def test_a_dynamic_setting_that_no_longer_fits_stops_the_start(tmp_path: Path) -> None:
    change = ConfigChange("log.cleaner.max.compaction.lag.ms", "5")
    resource = ResourceChange(ResourceType.BROKER, EVERY_BROKER, (change,))
    async with running(tmp_path) as controller:
        await controller.alter_configs([resource], incremental=True)
    with pytest.raises(ConfigError, match="must not be above"):
        async with running(tmp_path, BrokerConfig({"log.cleaner.min.compaction.lag.ms": "9"})):
            pass


async def test_elections_on_one_broker_are_not_needed() -> None:
    async with running() as controller:
        await controller.create_topics([NewTopic("t", 1, 1)])
        reply = await controller.elect_leaders(ElectionType.PREFERRED, {"t": [0]})
        assert reply["t"][0].code is ErrorCode.election_not_needed


async def test_two_brokers_of_one_number_cannot_be() -> None:
    tree = EmbeddedTree(None)
    await controller_of(await tree.connect()).start(ENDPOINTS)
    with pytest.raises(StartError, match=r"node\.id=1"):
        await controller_of(await tree.connect()).start(ENDPOINTS)
    await tree.close()


async def test_a_folder_of_another_cluster_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path):
        pass
    with pytest.raises(StartError, match="belongs to cluster other"):
        async with running(tmp_path, cluster_id="other"):
            pass


async def test_a_deposed_controller_writes_nothing() -> None:
    tree = EmbeddedTree(None)
    controller = controller_of(await tree.connect())
    await controller.start(ENDPOINTS)
    usurper = await tree.connect()
    await usurper.set(layout.CONTROLLER_EPOCH, b"2")
    with pytest.raises(ApiError) as caught:
        await controller.create_topics([NewTopic("t", 1, 1)])
    assert caught.value.code is ErrorCode.not_controller
    assert controller.image.topics == {}
    assert await usurper.exists(layout.topic_path("t")) is None
    await tree.close()


async def test_a_full_disk_is_an_error_of_the_request_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running() as controller:

        async def full(self: EmbeddedCoordination, operations: object) -> None:
            raise StoreError("coordination.sqlite: database or disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(EmbeddedCoordination, "multi", full)
            with pytest.raises(ApiError, match="disk is full") as caught:
                await controller.create_topics([NewTopic("t", 1, 1)])
        assert caught.value.code is ErrorCode.kafka_storage_error
        assert controller.image.topics == {}
        results = await controller.create_topics([NewTopic("t", 1, 1)])
        assert not results[0].outcome.failed


@pytest.mark.parametrize("make", [lambda: layout.uuid_text(random_id()), random_cluster_id])
def test_ids_are_as_kafka_makes_them(make: Callable[[], str]) -> None:
    made = {make() for _ in range(200)}
    assert len(made) == 200
    assert {len(each) for each in made} == {22}


def test_no_topic_id_begins_with_a_dash() -> None:
    assert not any(layout.uuid_text(random_id()).startswith("-") for _ in range(500))
