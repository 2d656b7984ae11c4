"""Several brokers on one tree: registration, election, ended sessions."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.cluster import membership
from ottla.cluster.errors import IdTakenError, StartError
from ottla.controller import layout
from ottla.controller.config_changes import ConfigChange, ResourceChange, ResourceType
from ottla.controller.features import DEFAULT_LEVELS, SUPPORTED, FeatureUpdate, UpgradeType
from ottla.controller.image import (
    EVERY_BROKER,
    BrokerAppeared,
    BrokerImage,
    FeaturesChanged,
)
from ottla.controller.topics import NewTopic
from ottla.coordination.embedded import EmbeddedCoordination
from ottla.coordination.tree import ConnectionLostError, Create, Delete

CreatesNode = Callable[[Any, str, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Gets the session, the path and the creation."""


def creations(monkeypatch: pytest.MonkeyPatch, around: CreatesNode) -> None:
    """`around` makes every creation of a node, be it alone or in a `multi`."""
    real_create, real_multi = EmbeddedCoordination.create, EmbeddedCoordination.multi

    async def create(self: Any, path: str, data: bytes = b"", *, ephemeral: bool = False) -> Any:
        return await around(self, path, lambda: real_create(self, path, data, ephemeral=ephemeral))

    async def multi(self: Any, operations: Any) -> None:
        made = [each.path for each in operations if isinstance(each, Create)]
        if not made:
            await real_multi(self, operations)
        else:
            await around(self, made[0], lambda: real_multi(self, operations))

    monkeypatch.setattr(EmbeddedCoordination, "create", create)
    monkeypatch.setattr(EmbeddedCoordination, "multi", multi)


async def test_the_first_broker_is_the_controller_and_the_others_get_its_image(
    neighbours: Any,
) -> None:
    first = await neighbours.start(1)
    await first.controller.create_topics([NewTopic("t", 1, 1)])
    second = await neighbours.start(2)
    assert first.controller.active
    assert not second.controller.active
    assert second.image.controller_id == 1
    assert second.image.topics == first.image.topics
    assert second.image.cluster_id == first.image.cluster_id


async def test_all_brokers_know_each_other(neighbours: Any, eventually: Any) -> None:
    nodes = [await neighbours.start(number) for number in (1, 2, 3)]
    await eventually(lambda: all(set(node.image.brokers) == {1, 2, 3} for node in nodes))
    epochs = {node.registration.broker_epoch for node in nodes}
    assert epochs == {broker.epoch for broker in nodes[2].image.brokers.values()}
    assert len(epochs) == 3


async def test_another_controller_takes_over_with_a_new_epoch(
    neighbours: Any, eventually: Any
) -> None:
    first, second, third = [await neighbours.start(number) for number in (1, 2, 3)]
    await first.membership.close()
    others = (second, third)
    await eventually(lambda: any(node.controller.active for node in others))
    (leader,) = (node for node in others if node.controller.active)
    await eventually(lambda: all(set(node.image.brokers) == {2, 3} for node in others))
    for node in others:
        assert node.image.controller_id == leader.config.id
        assert node.image.controller_epoch == 2
    assert not first.controller.active


async def test_a_broker_registers_again_after_its_session_ended(
    neighbours: Any, eventually: Any
) -> None:
    first, second = [await neighbours.start(number) for number in (1, 2)]
    before = first.registration.broker_epoch
    session = first.membership.session
    await neighbours.tree.expire(session)
    await eventually(lambda: first.registration.broker_epoch != before)
    assert first.membership.session is not session
    now = first.registration.broker_epoch
    nodes = (first, second)
    await eventually(
        lambda: all(
            set(node.image.brokers) == {1, 2} and node.image.brokers[1].epoch == now
            for node in nodes
        )
    )
    assert [node.controller.active for node in nodes].count(True) == 1
    assert first.image.controller_id == second.image.controller_id
    assert first.image.controller_epoch == second.image.controller_epoch == 2


async def test_a_deleted_registration_is_created_again(neighbours: Any, eventually: Any) -> None:
    node = await neighbours.start(1)
    before, session = node.registration.broker_epoch, node.membership.session
    observer = await neighbours.tree.connect()
    await asyncio.sleep(0)
    await observer.delete(layout.broker_path(1))
    await eventually(lambda: node.registration.broker_epoch != before)
    await eventually(
        lambda: (
            1 in node.image.brokers
            and node.image.brokers[1].epoch == node.registration.broker_epoch
        )
    )
    assert node.membership.session is session
    assert node.controller.active


async def test_a_restarted_broker_replaces_its_former_incarnation(neighbours: Any) -> None:
    await neighbours.start(1)
    former = await neighbours.start(2, directory_id="disk", lock="file", live=False)
    again = await neighbours.start(2, directory_id="disk", lock="file", live=False)
    assert again.registration.broker_epoch > former.registration.broker_epoch
    there = await again.membership.session.exists(layout.broker_path(2))
    assert there.owner == again.membership.session.number


async def test_a_session_that_ends_during_the_start_is_replaced(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    """The first broker's when it is already the controller, the second's before it is known."""
    expired = {layout.CLUSTER_ID, layout.broker_path(1), layout.broker_path(2)}

    async def expire(session: Any, path: str, create: Any) -> Any:
        if path in expired:
            expired.remove(path)
            await neighbours.tree.expire(session)
        return await create()

    creations(monkeypatch, expire)
    first, second = [await neighbours.start(number) for number in (1, 2)]
    assert expired == set()
    await eventually(lambda: first.controller.active or second.controller.active)
    epochs = {1: first.registration.broker_epoch, 2: second.registration.broker_epoch}

    def known(node: Any) -> dict[int, int]:
        return {number: broker.epoch for number, broker in node.image.brokers.items()}

    await eventually(lambda: known(first) == known(second) == epochs)


async def test_a_connection_that_is_lost_for_good_ends_the_start(
    neighbours: Any, monkeypatch: Any
) -> None:
    async def lose(session: Any, path: str, create: Any) -> Any:
        raise ConnectionLostError(path)

    creations(monkeypatch, lose)
    node = neighbours.new(1, zookeeper_connection_timeout_ms="50")
    with pytest.raises(ConnectionLostError):
        await asyncio.wait_for(node.start(), 20)


async def test_a_restarted_controller_replaces_its_former_incarnation(
    neighbours: Any, refusing_address: tuple[str, int]
) -> None:
    former = await neighbours.start(1, directory_id="disk", lock="file", live=False)
    del neighbours.nodes[1]
    neighbours.addresses[1] = refusing_address
    again = await neighbours.start(1, directory_id="disk", lock="file", live=False)
    assert again.controller.active
    assert again.image.controller_epoch == 2
    assert again.image.brokers[1].epoch == again.registration.broker_epoch
    results = await again.controller.create_topics([NewTopic("t", 1, 1)])
    assert not results[0].outcome.failed
    assert former.image.topics == {}


async def test_the_start_waits_for_a_lost_connection(
    neighbours: Any, eventually: Any, monkeypatch: Any
) -> None:
    """The write took effect, but its response was lost: the tree's own nodes, then an election."""
    lost = dict.fromkeys((layout.CLUSTER_ID, layout.CONTROLLER, layout.broker_path(2)), 0)

    async def lose(session: Any, path: str, create: Any) -> Any:
        made = await create()
        if lost.get(path) == 0:
            lost[path] += 1
            raise ConnectionLostError(path)
        return made

    creations(monkeypatch, lose)
    first, second = [await neighbours.start(number) for number in (1, 2)]
    assert set(lost.values()) == {1}
    assert first.controller.active
    epoch = second.registration.broker_epoch
    for node in (first, second):
        await eventually(lambda at=node: 1 in at.image.brokers)
        await eventually(lambda at=node: 2 in at.image.brokers)
        await eventually(lambda at=node: at.image.brokers[2].epoch == epoch)


async def test_two_brokers_cannot_have_the_same_id(
    neighbours: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ottla.cluster.membership.EXPIRY_SLACK_MS", 300)
    await neighbours.start(1)
    await neighbours.start(2)
    other = neighbours.new(2, directory_id="another", zookeeper_session_timeout_ms="1")
    with pytest.raises(StartError, match=r"node\.id=2"):
        await other.start()
    assert caplog.text.count("node.id=2 is taken by a broker at ") == 1


async def test_an_id_is_free_when_its_brokers_session_ends(neighbours: Any) -> None:
    await neighbours.start(1)
    former = await neighbours.start(2, live=False)
    other = neighbours.new(2, directory_id="another")
    starting = asyncio.create_task(other.start())
    await asyncio.sleep(0.01)
    assert not starting.done()
    await neighbours.tree.expire(former.membership.session)
    await asyncio.wait_for(starting, 20)
    assert other.registration.broker_epoch > former.registration.broker_epoch


async def test_the_start_fails_if_the_controller_does_not_answer(
    neighbours: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.cluster.membership.FIRST_IMAGE_WITHIN_MS", 300)
    await neighbours.start(1)
    del neighbours.nodes[1]
    with pytest.raises(StartError, match="broker 1, the controller, does not answer"):
        await neighbours.new(2).start()


async def test_the_cluster_id_of_the_tree_precedes_that_of_the_folder(neighbours: Any) -> None:
    first, second = neighbours.new(1), neighbours.new(2)
    assert await first.membership.connect("folder's") == "folder's"
    assert await second.membership.connect("other") == "folder's"


KAFKAS = (
    b'{"features":{},"listener_security_protocol_map":{"A":"SASL_SSL"},"endpoints":["A://h:9092"],'
    b'"jmx_port":-1,"port":9092,"host":"h","version":5,"timestamp":"1795575528000"}'
)


async def test_a_broker_does_not_start_beside_apache_kafka(neighbours: Any) -> None:
    observer = await neighbours.tree.connect()
    await observer.create("/brokers")
    await observer.create(layout.BROKER_IDS)
    await observer.create(layout.broker_path(7), KAFKAS)
    with pytest.raises(StartError, match="broker 7 of this cluster is Apache Kafka: stop every"):
        await neighbours.new(1).start()
    assert set(await observer.read_tree("/")) == {"/", "/brokers", "/brokers/ids", "/brokers/ids/7"}
    await observer.delete(layout.broker_path(7))
    await neighbours.start(1)


async def test_a_tree_that_cannot_be_used_stops_the_start_with_one_line(neighbours: Any) -> None:
    observer = await neighbours.tree.connect()
    first = neighbours.new(1)
    await first.membership.connect(None)
    await observer.create(layout.topic_path("t"), b"{}")
    with pytest.raises(StartError, match="cluster's state cannot be used: /brokers/topics/t"):
        await first.membership.first_image()
    await observer.set(layout.CLUSTER_ID, b"")
    with pytest.raises(StartError, match="cluster's state cannot be used: /cluster/id"):
        await neighbours.new(2).membership.connect(None)


async def test_a_folder_of_a_cluster_does_not_found_another(neighbours: Any) -> None:
    """A wiped or wrong ensemble: without the topics, the folder would be emptied."""
    node = neighbours.new(1)
    for _ in range(2):
        with pytest.raises(StartError, match=r"belongs to cluster folder's.*zookeeper\.connect"):
            await node.membership.connect("folder's", allow_new_cluster=False)
    assert await node.membership.connect(None) != "folder's"


async def test_a_leaving_broker_hands_over_its_leaderships(
    neighbours: Any, eventually: Any
) -> None:
    first, second = [await neighbours.start(number) for number in (1, 2)]
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    await first.controller.create_topics([NewTopic("t", 4, 2)])
    await asyncio.wait_for(second.membership.leave(), 20)
    states = first.image.topics["t"].partitions
    assert {(state.leader, state.isr) for state in states} == {(1, (1,))}
    await first.controller.create_topics([NewTopic("u", 4, 1)])
    assert {state.replicas for state in first.image.topics["u"].partitions} == {(1,)}


async def test_a_registration_with_a_lost_response_is_valid(
    neighbours: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise every in-sync set it proposes would have the epoch of a former registration."""
    node = await neighbours.start(1)
    before, session = node.registration.broker_epoch, node.membership.session
    lost: list[Any] = []

    async def lose(_: Any, path: str, create: Any) -> Any:
        made = await create()
        if path == layout.broker_path(1) and not lost:
            lost.append(path)
            raise ConnectionLostError(path)
        return made

    creations(monkeypatch, lose)
    await session.delete(layout.broker_path(1))

    def known() -> int | None:
        broker = node.image.brokers.get(1)
        return None if broker is None else broker.epoch

    await eventually(lambda: known() not in (None, before))
    await eventually(lambda: known() == node.registration.broker_epoch)


async def test_a_conflicting_dynamic_setting_does_not_depose_the_controller(
    neighbours: Any, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    first = await neighbours.start(1)
    second = await neighbours.start(2, log_cleaner_min_compaction_lag_ms="9")
    change = ConfigChange("log.cleaner.max.compaction.lag.ms", "5")
    resource = ResourceChange(ResourceType.BROKER, EVERY_BROKER, (change,))
    results = await first.controller.alter_configs([resource], incremental=True)
    assert not results[0].outcome.failed
    await first.membership.close()
    await eventually(lambda: second.controller.active)
    assert "must not be above" in caplog.text


async def test_an_invalid_tree_is_read_again_after_its_repair(
    neighbours: Any,
    eventually: Any,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ottla.cluster.membership.UNUSABLE_RETRY_MS", 10)
    first, second = [await neighbours.start(number) for number in (1, 2)]
    path = layout.broker_config_path("2")
    observer = await neighbours.tree.connect()
    await observer.create(path, b"{")
    await first.membership.close()
    await eventually(lambda: "cannot be used" in caplog.text)
    assert path in caplog.text
    assert not second.controller.active
    await observer.delete(path)
    await eventually(lambda: second.controller.active)


async def test_a_wiped_ensemble_does_not_delete_topics(
    neighbours: Any,
    eventually: Any,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A controller that loads it would make all brokers delete their data."""
    monkeypatch.setattr("ottla.cluster.membership.UNUSABLE_RETRY_MS", 10)
    node = await neighbours.start(1)
    await node.controller.create_topics([NewTopic("t", 1, 1)])
    observer = await neighbours.tree.connect()
    own = await observer.get(layout.CLUSTER_ID)
    await observer.set(layout.CLUSTER_ID, layout.write_cluster_id("another"))
    await neighbours.tree.expire(node.membership.session)
    await eventually(lambda: "another; this broker belongs to cluster" in caplog.text)
    await observer.delete(layout.CLUSTER_ID)
    await eventually(lambda: "missing; this broker belongs to cluster" in caplog.text)
    assert set(node.image.topics) == {"t"}
    assert not node.controller.active
    assert await observer.exists(layout.broker_path(1)) is None
    await observer.create(layout.CLUSTER_ID, own.data)
    await eventually(lambda: node.controller.active)


@pytest.mark.parametrize("theirs", ["theirs", "disk"])
async def test_a_broker_stops_if_another_process_has_its_id(
    neighbours: Any, eventually: Any, theirs: str
) -> None:
    """Also one with a copy of its folder, whose directory id is the same."""
    node = await neighbours.start(1, directory_id="disk", lock="file")
    path, before = layout.broker_path(1), node.registration.broker_epoch
    other = await neighbours.tree.connect()
    image = BrokerImage(1, node.endpoints, directory_id=theirs)
    data = layout.write_broker(image, 0, "another file")
    await other.multi([Delete(path), Create(path, data, ephemeral=True)])
    await eventually(lambda: node.ousted)
    (why,) = node.ousted
    assert why.startswith("node.id=1: ")
    assert ("a copy of this data folder" in why) is (theirs == "disk")
    assert not node.controller.active
    assert node.registration.broker_epoch == before
    await asyncio.wait_for(node.membership.leave(), 20)
    await node.membership.close()
    assert (await other.get(path)).data == data


async def test_a_broker_stops_if_the_controller_knows_a_later_process_with_its_id(
    neighbours: Any,
) -> None:
    """Its own connection with the ensemble may be cut."""
    node = await neighbours.start(1, directory_id="disk", live=False)
    first = node.registration.first_epoch
    for image in (
        BrokerImage(1, node.endpoints, epoch=first - 1, directory_id="disk"),
        BrokerImage(1, node.endpoints, epoch=first + 5, directory_id="disk", first_epoch=first),
        BrokerImage(2, node.endpoints, epoch=first + 7, directory_id="disk"),
    ):
        await node.view.apply([BrokerAppeared(image)])
    assert node.ousted == []
    later = BrokerImage(1, node.endpoints, epoch=first + 9, directory_id="disk")
    for _ in range(2):
        await node.view.apply([BrokerAppeared(later)])
    (why,) = node.ousted
    assert "a copy of this data folder" in why


async def test_a_copy_of_the_folder_of_a_running_broker_does_not_start(
    neighbours: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.cluster.membership.EXPIRY_SLACK_MS", 300)
    running = await neighbours.start(1, directory_id="disk", lock="file")
    epoch = running.registration.broker_epoch
    for lock in ("another file", None):
        copy = neighbours.new(1, directory_id="disk", lock=lock, zookeeper_session_timeout_ms="1")
        with pytest.raises(IdTakenError, match="a copy of this data folder"):
            await copy.start()
    there = await running.membership.session.get(layout.broker_path(1))
    assert (there.created, running.ousted) == (epoch, [])


async def test_a_node_of_an_own_former_session_is_replaced(
    neighbours: Any, eventually: Any
) -> None:
    """ZooKeeper may delete it late (ZOOKEEPER-2985); without the lock's identity, too."""
    node = await neighbours.start(1, lock=None)
    path, before = layout.broker_path(1), node.registration.broker_epoch
    former = node.membership.session
    node.membership._session = await neighbours.tree.connect()
    node.membership.check()
    await eventually(lambda: node.registration.broker_epoch != before)
    there = await former.get(path)
    assert there.owner == node.membership.session.number
    assert node.ousted == []
    await former.close()


async def test_without_zookeeper_a_broker_stops_soon(
    neighbours: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """The controller's plan waits for the ensemble until the session ends: twenty seconds."""
    first, _ = [await neighbours.start(number) for number in (1, 2)]
    await eventually(lambda: set(first.image.brokers) == {1, 2})
    await first.controller.create_topics([NewTopic("t", 4, 2)])
    answers = asyncio.Event()

    async def multi(self: Any, operations: Any) -> None:
        await answers.wait()
        raise ConnectionLostError("multi")

    kind = type(first.membership.session)
    monkeypatch.setattr(kind, "multi", multi)
    monkeypatch.setattr(kind, "is_connected", property(lambda self: False))
    monkeypatch.setattr(membership, "NO_CONTROLLER_MS", 300)
    await asyncio.wait_for(first.membership.leave(), 20)
    assert "leaving without handing leadership over" in caplog.text
    answers.set()
    await eventually(lambda: "no longer the controller" in caplog.text)
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_the_levels_of_features_reach_every_broker(neighbours: Any, eventually: Any) -> None:
    first, second = [await neighbours.start(number) for number in (1, 2)]
    assert first.image.features == second.image.features == DEFAULT_LEVELS
    await eventually(lambda: 2 in first.image.brokers)
    assert first.image.brokers[2].features == SUPPORTED
    down = FeatureUpdate("transaction.version", 1, UpgradeType.SAFE_DOWNGRADE)
    assert not (await first.controller.update_features([down])).failed
    changed = {**DEFAULT_LEVELS, "transaction.version": 1}
    await eventually(lambda: second.image.features == changed)
    assert second.image.features_version == 1
    third = await neighbours.start(3)
    assert third.image.features == changed


async def test_a_broker_does_not_start_in_a_cluster_with_newer_features(neighbours: Any) -> None:
    first = await neighbours.start(1)
    data = layout.write_features({"transaction.version": 9})
    await first.membership.session.set(layout.FEATURES, data, 0)
    await first.view.apply([FeaturesChanged({"transaction.version": 9}, 1)])
    with pytest.raises(StartError, match=r"transaction\.version is at level 9.*supports 0 to 2"):
        await neighbours.new(2).start()


async def test_a_controller_that_refuses_connections_is_asked_by_the_tree_first(
    neighbours: Any,
    eventually: Any,
    refusing_address: tuple[str, int],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A firewall or a proxy may refuse for it. In Kafka only its session decides."""
    first, second = [await neighbours.start(number) for number in (1, 2)]
    neighbours.addresses[1] = refusing_address
    for _ in range(3):
        await second.membership._controller_out_of_reach(1, True)
    there = await second.membership.session.get(layout.CONTROLLER)
    assert there.owner == first.membership.session.number
    assert (first.controller.active, first.image.controller_epoch) == (True, 1)
    assert caplog.text.count("broker 1, the controller, refuses connections here") == 1

    async def silent(session: Any, path: str) -> None:
        return None

    monkeypatch.setattr(membership, "answer", silent)
    second.membership._spared.clear()
    await second.membership._controller_out_of_reach(1, True)
    await eventually(lambda: first.image.controller_epoch == second.image.controller_epoch == 2)
