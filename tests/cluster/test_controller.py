import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.cluster import controller as controller_module
from ottla.cluster.controller import Controller
from ottla.config.broker import BrokerConfig
from ottla.controller import layout
from ottla.controller.config_changes import ConfigChange, ResourceChange, ResourceType
from ottla.controller.deletion import TopicToDelete
from ottla.controller.elections import ElectionType
from ottla.controller.image import EVERY_BROKER, MetadataDelta, TopicCreated, TopicDeleted
from ottla.controller.topics import MorePartitions, NewTopic
from ottla.coordination.embedded import EmbeddedCoordination, EmbeddedTree
from ottla.coordination.embedded_store import EmbeddedStore, StoreError
from ottla.coordination.tree import ConnectionLostError, Limits
from ottla.protocol.errors import ApiError, ErrorCode

Running = Callable[..., AbstractAsyncContextManager[Controller]]


@pytest.fixture
def running(lone_node: Any) -> Running:
    """Runs a lone broker's controller, on a folder or in memory."""

    @asynccontextmanager
    async def run(
        folder: Path | None = None, config: BrokerConfig | None = None, cluster_id: str = "c"
    ) -> AsyncIterator[Controller]:
        tree = EmbeddedTree(folder)
        node = lone_node(config or BrokerConfig(), tree)
        try:
            await node.start(cluster_id)
            yield node.controller
        finally:
            await node.membership.close()
            await tree.close()

    return run


async def test_the_broker_registers_and_leads(lone_node: Any) -> None:
    tree = EmbeddedTree(None)
    node = lone_node(BrokerConfig(), tree)
    await node.start()
    assert node.image.brokers[1].endpoints == node.endpoints
    assert node.image.brokers[1].epoch == node.registration.broker_epoch
    assert node.image.controller_id == 1
    assert node.image.controller_epoch == 1
    observer = await tree.connect()
    nodes = await observer.read_tree("/")
    assert nodes["/controller"].owner == nodes["/brokers/ids/1"].owner != 0
    assert nodes["/controller_epoch"].data == b"1"
    await node.membership.close()
    assert await observer.exists("/brokers/ids/1") is None
    assert await observer.exists("/controller") is None
    await tree.close()


async def test_the_state_survives_a_restart(tmp_path: Path, running: Running) -> None:
    async with running(tmp_path) as controller:
        results = await controller.create_topics(
            [NewTopic("t", 3, 1, configs=(("retention.ms", "5"),))]
        )
        assert not results[0].outcome.failed
        await controller.add_partitions([MorePartitions("t", 4)])
        assert await controller.next_producer_ids(1) == (0, 1000)
        before = dict(controller.image.topics)
        cluster_id = controller.image.cluster_id
    async with running(tmp_path, cluster_id=cluster_id) as controller:
        (topic,) = controller.image.topics.values()
        # This broker cannot tell that it stopped cleanly.
        states = tuple(
            each._replace(leader_epoch=1, partition_epoch=each.partition_epoch + 1)
            for each in before["t"].partitions
        )
        assert topic == replace(before["t"], partitions=states)
        assert controller.image.cluster_id == cluster_id
        assert controller.image.controller_epoch == 2
        assert await controller.next_producer_ids(1) == (1000, 2000)


async def test_subscribers_are_notified_after_the_image_and_before_the_reply(
    running: Running,
) -> None:
    async with running() as controller:
        received: list[MetadataDelta] = []

        def at_once(delta: MetadataDelta) -> None:
            received.append(delta)
            if isinstance(delta, TopicCreated):
                assert controller.image.topic(delta.topic.name) == delta.topic

        async def later(delta: MetadataDelta) -> None:
            await asyncio.sleep(0.01)
            received.append(delta)

        controller._view.subscribe(at_once)
        controller._view.subscribe(later)
        await controller.create_topics([NewTopic("t", 1, 1)])
        assert [type(delta) for delta in received] == [TopicCreated, TopicCreated]
        await controller.delete_topics([TopicToDelete("t")])
        assert [type(delta) for delta in received[2:]] == [TopicDeleted, TopicDeleted]
        await controller.create_topics([NewTopic("t", 1, 1)], validate_only=True)
        await controller.create_topics([NewTopic("t", 0, 1)])
        assert len(received) == 4


async def test_a_cancelled_caller_does_not_stop_its_plan(running: Running) -> None:
    async with running() as controller:
        await controller.create_topics([NewTopic("t", 1, 1)])
        task = asyncio.create_task(controller.delete_topics([TopicToDelete("t")]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await controller.create_topics([NewTopic("u", 1, 1)])
        assert set(controller.image.topics) == {"u"}


async def test_concurrent_requests_run_one_after_another(running: Running) -> None:
    async with running() as controller:
        results = await asyncio.gather(
            *(controller.create_topics([NewTopic("t", 1, 1)]) for _ in range(5))
        )
        codes = sorted(result[0].outcome.code for result in results)
        assert codes == [ErrorCode.none, *[ErrorCode.topic_already_exists] * 4]
        blocks = await asyncio.gather(*(controller.next_producer_ids(1) for _ in range(5)))
        assert sorted(first for first, _ in blocks) == [0, 1000, 2000, 3000, 4000]


async def test_dynamic_settings_are_applied_and_stored(tmp_path: Path, running: Running) -> None:
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


async def test_a_conflicting_dynamic_setting_does_not_stop_the_start(
    tmp_path: Path, running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    changes = (
        ConfigChange("log.cleaner.max.compaction.lag.ms", "5"),
        ConfigChange("log.cleaner.threads", "2"),
        ConfigChange("message.max.bytes", "7"),
    )
    resource = ResourceChange(ResourceType.BROKER, EVERY_BROKER, changes)
    async with running(tmp_path) as controller:
        (result,) = await controller.alter_configs([resource], incremental=True)
        assert not result.outcome.failed
        cluster_id = controller.image.cluster_id
    config = BrokerConfig({"log.cleaner.min.compaction.lag.ms": "9"})
    async with running(tmp_path, config, cluster_id=cluster_id):
        assert config.message_max_bytes == 7
    assert "log.cleaner.max.compaction.lag.ms" in caplog.text


@pytest.mark.parametrize("writes", [1, 1_100])
async def test_a_large_change_that_fails_did_not_happen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: Running, writes: int
) -> None:
    """Also at the next start: records that were written meanwhile would go with the topic."""
    apply = EmbeddedStore._apply
    left = writes

    def full(self: EmbeddedStore, *given: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise sqlite3.OperationalError("database or disk is full")
        apply(self, *given)

    async with running(tmp_path) as controller:
        cluster_id = controller.image.cluster_id
        await controller.create_topics([NewTopic("deleted", 600, 1)])
        with monkeypatch.context() as patch:
            patch.setattr(EmbeddedStore, "_apply", full)
            with pytest.raises(ApiError) as caught:
                await controller.delete_topics([TopicToDelete("deleted")])
            assert caught.value.code is ErrorCode.kafka_storage_error
            left = writes
            with pytest.raises(ApiError):
                await controller.create_topics([NewTopic("created", 600, 1)])
        assert list(controller.image.topics) == ["deleted"]
    async with running(tmp_path, cluster_id=cluster_id) as controller:
        assert list(controller.image.topics) == ["deleted"]


async def test_elections_on_one_broker_are_not_needed(running: Running) -> None:
    async with running() as controller:
        await controller.create_topics([NewTopic("t", 1, 1)])
        reply = await controller.elect_leaders(ElectionType.PREFERRED, {"t": [0]})
        assert reply["t"][0].code is ErrorCode.election_not_needed


async def test_a_deposed_controller_writes_nothing(lone_node: Any) -> None:
    tree = EmbeddedTree(None)
    node = lone_node(BrokerConfig(), tree)
    await node.start()
    controller = node.controller
    usurper = await tree.connect()
    await usurper.set(layout.CONTROLLER_EPOCH, b"2")
    with pytest.raises(ApiError) as caught:
        await controller.create_topics([NewTopic("t", 1, 1)])
    assert caught.value.code is ErrorCode.not_controller
    assert not controller.active
    assert controller.image.topics == {}
    assert await usurper.exists(layout.topic_path("t")) is None
    await node.membership.close()
    await tree.close()


async def test_a_deletion_in_parts_is_answered_when_its_outcome_is_decided(
    lone_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = EmbeddedTree(None)
    monkeypatch.setattr(EmbeddedCoordination, "limits", Limits(4))
    node = lone_node(BrokerConfig(), tree)
    await node.start()
    controller = node.controller
    await controller.create_topics([NewTopic("t", 3, 1)])
    real, parts = EmbeddedCoordination.multi, 0

    async def second_fails(self: EmbeddedCoordination, operations: Any) -> None:
        nonlocal parts
        parts += 1
        if parts == 2:
            raise ConnectionLostError("/")
        await real(self, operations)

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedCoordination, "multi", second_fails)
        answer = asyncio.create_task(controller.delete_topics([TopicToDelete("t")]))
        while controller.active:
            await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
    assert not answer.done()
    assert "t" in controller.image.topics
    node.membership.start()
    with pytest.raises(ApiError) as caught:
        await answer
    assert caught.value.code is ErrorCode.not_controller
    assert controller.image.controller_epoch == 2
    assert "t" not in controller.image.topics
    assert await node.membership.session.children(layout.DELETED_TOPICS) == ()
    await node.membership.close()
    await tree.close()


async def test_without_a_next_controller_the_client_hears_that_the_time_is_up(
    lone_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_module, "OUTCOME_WITHIN_MS", 50)
    tree = EmbeddedTree(None)
    node = lone_node(BrokerConfig(), tree)
    await node.start()

    async def lose(self: EmbeddedCoordination, operations: Any) -> None:
        raise ConnectionLostError("/")

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedCoordination, "multi", lose)
        with pytest.raises(ApiError) as caught:
            await node.controller.create_topics([NewTopic("t", 1, 1)])
    assert caught.value.code is ErrorCode.request_timed_out
    await node.membership.close()
    await tree.close()


async def test_a_full_disk_fails_the_request_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, running: Running
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


async def test_a_late_plan_of_an_earlier_tenure_ends_that_one_only(
    lone_node: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = EmbeddedTree(None)
    node = lone_node(BrokerConfig(), tree)
    await node.start()
    controller, session = node.controller, node.membership.session
    real, late, is_sent = EmbeddedCoordination.multi, asyncio.Event(), asyncio.Event()

    async def multi(self: Any, operations: Any) -> None:
        monkeypatch.setattr(EmbeddedCoordination, "multi", real)
        is_sent.set()
        await late.wait()
        await real(self, operations)

    monkeypatch.setattr(EmbeddedCoordination, "multi", multi)
    plan = asyncio.create_task(controller.next_producer_ids(1))
    await is_sent.wait()
    overtaken: list[str] = []
    controller.resign("for the test")
    await controller.lead(session, overtaken=lambda: overtaken.append("yes"))
    late.set()
    with pytest.raises(ApiError):
        await plan
    assert (controller.active, overtaken) == (True, [])
    assert await controller.next_producer_ids(1) == (0, 1000)
    await node.membership.close()
    await tree.close()


async def test_the_deltas_of_a_late_plan_are_left_to_the_next_image(
    lone_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writes are in the tree, and the next controller has read them. A state that was changed
    again since must not come back."""
    tree = EmbeddedTree(None)
    node = lone_node(BrokerConfig(), tree)
    await node.start()
    controller, session = node.controller, node.membership.session
    real, late, is_done = EmbeddedCoordination.multi, asyncio.Event(), asyncio.Event()

    async def multi(self: Any, operations: Any) -> None:
        monkeypatch.setattr(EmbeddedCoordination, "multi", real)
        await real(self, operations)
        is_done.set()
        await late.wait()

    monkeypatch.setattr(EmbeddedCoordination, "multi", multi)
    plan = asyncio.create_task(controller.next_producer_ids(1))
    await is_done.wait()
    controller.resign("for the test")
    await controller.lead(session, overtaken=lambda: None)
    assert await controller.next_producer_ids(1) == (1000, 2000)
    late.set()
    with pytest.raises(ApiError) as refused:
        await plan
    assert refused.value.code is ErrorCode.not_controller
    assert await controller.next_producer_ids(1) == (2000, 3000)
    await node.membership.close()
    await tree.close()
