from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from ottla.config.broker import BrokerConfig
from ottla.controller import layout
from ottla.controller.config_changes import (
    ConfigChange,
    ResourceChange,
    ResourceType,
    alter_configs,
)
from ottla.controller.features import (
    DEFAULT_LEVELS,
    SUPPORTED,
    FeatureUpdate,
    UpgradeType,
    update_features,
)
from ottla.controller.image import (
    EVERY_BROKER,
    BrokerAppeared,
    ClusterImage,
    FeaturesChanged,
    PartitionState,
)
from ottla.controller.layout import LayoutError
from ottla.controller.loading import first_writes, load_image
from ottla.controller.plan import Plan, decided
from ottla.controller.producer_ids import reserve_producer_ids
from ottla.controller.quotas import QuotaChange, all_quotas, alter_quotas
from ottla.controller.recovery import healing_writes
from ottla.controller.topics import MorePartitions, NewTopic, add_partitions, create_topics
from ottla.coordination.embedded_store import EmbeddedStore
from ottla.coordination.tree import Create, TreeNode


@pytest.fixture
def store() -> EmbeddedStore:
    store = EmbeddedStore(None)
    store.multi(first_writes({}, "cluster"), 1)
    return store


def tree(store: EmbeddedStore) -> dict[str, TreeNode]:
    nodes = store.read_tree("/")
    nodes.pop("/")
    return nodes


def test_the_first_writes_happen_once(store: EmbeddedStore) -> None:
    assert first_writes(tree(store), "other") == ()
    image = decided(load_image(tree(store), 1))
    assert (image.cluster_id, image.controller_epoch, image.topics) == ("cluster", 0, {})
    assert (image.features, image.features_version) == (DEFAULT_LEVELS, 0)


def test_the_loaded_image_equals_the_one_that_was_written(
    store: EmbeddedStore,
    image: ClusterImage,
    config: BrokerConfig,
    new_id: Callable[[], UUID],
) -> None:
    def carry_out(plan: Plan[Any]) -> None:
        assert plan.writes
        store.multi(plan.writes, 1)
        for delta in plan.deltas:
            image.apply(delta)

    for broker in list(image.brokers.values()):
        image.apply(BrokerAppeared(replace(broker, features=SUPPORTED, directory_id="disk")))
    for broker in image.brokers.values():
        path = layout.broker_path(broker.broker_id)
        store.multi([Create(path, layout.write_broker(broker, 0))], 1)
    wanted = [NewTopic("t", 3, 2, configs=(("retention.ms", "5"),)), NewTopic("u.v", 12, 1)]
    carry_out(decided(create_topics(wanted, image, config, new_id=new_id, start=2)))
    carry_out(decided(add_partitions([MorePartitions("t", 11)], image, start=1)))
    change = ConfigChange("log.retention.ms", "9")
    for name in (EVERY_BROKER, "1"):
        resource = ResourceChange(ResourceType.BROKER, name, (change,))
        carry_out(decided(alter_configs([resource], image, config, incremental=True)))
    resource = ResourceChange(ResourceType.TOPIC, "t", (ConfigChange("segment.ms", "7"),))
    carry_out(decided(alter_configs([resource], image, config, incremental=True)))
    carry_out(reserve_producer_ids(image, 1))
    carry_out(reserve_producer_ids(image, 1))
    rate = (("producer_byte_rate", 5.0),)
    for entity in (
        (("user", "a b"),),
        (("user", "~"), ("client-id", "c/d")),
        (("user", None), ("client-id", None)),
        (("client-id", "x"),),
    ):
        carry_out(decided(alter_quotas([QuotaChange(entity, rate)], image)))
    address = QuotaChange((("ip", "::1"),), (("connection_creation_rate", 2.0),))
    carry_out(decided(alter_quotas([address], image)))
    image.apply(FeaturesChanged(DEFAULT_LEVELS, 0))
    for level in (1, 0):
        update = FeatureUpdate("transaction.version", level, UpgradeType.SAFE_DOWNGRADE)
        carry_out(decided(update_features([update], image, 1)))

    loaded = decided(load_image(tree(store), 1))
    assert loaded.topics == image.topics
    assert loaded.topics_by_id == image.topics_by_id
    assert len({broker.epoch for broker in loaded.brokers.values()}) == 3
    brokers = {number: replace(each, epoch=-1) for number, each in loaded.brokers.items()}
    assert brokers == image.brokers
    assert loaded.configs == image.configs
    assert (loaded.users, loaded.quotas) == (image.users, image.quotas)
    assert len([each for each in all_quotas(loaded) if each is not None]) == 5
    assert loaded.next_producer_id == image.next_producer_id == 2000
    assert loaded.producer_ids_version == image.producer_ids_version
    assert (loaded.features, loaded.features_version) == (image.features, 2)
    assert loaded.features == {"group.version": 1, "share.version": 2, "streams.version": 1}
    assert loaded.colliding("u_v") == "u.v"


def test_a_missing_state_is_an_error_that_names_it(store: EmbeddedStore) -> None:
    data = layout.write_topic(UUID(int=1), [layout.Assignment((1,))])
    store.multi([Create(layout.topic_path("t"), data)], 1)
    with pytest.raises(LayoutError, match="/brokers/topics/t/partitions/0/state: missing"):
        decided(load_image(tree(store), 1))


def test_a_tree_of_kafka_3_9_without_topics_is_loaded() -> None:
    """As Kafka makes it; the registration of a broker that crashed is still there."""
    store = EmbeddedStore(None)
    store.multi(first_writes(tree(store), "c"), 1)
    registration = (
        b'{"features":{},"listener_security_protocol_map":{"A":"SASL_SSL"},'
        b'"endpoints":["A://host:9092"],"jmx_port":-1,"port":9092,"host":"host","version":5,'
        b'"timestamp":"1795575528000"}'
    )
    writes = [
        Create("/brokers/ids/1", registration),
        Create(layout.PRODUCER_ID_BLOCK),
        Create("/config/brokers/1"),
    ]
    store.multi(writes, 1)
    image = decided(load_image(tree(store), 2))
    assert image.brokers == {}
    assert image.config("1").values == {}
    assert (image.next_producer_id, image.producer_ids_version) == (0, 0)
    assert reserve_producer_ids(image, 2).reply == (0, 1000)


def test_the_image_of_many_topics_is_loaded_in_steps() -> None:
    """A new controller holds the event loop of a broker that has clients."""
    nodes = {path: TreeNode(b"", 0) for path in layout.LASTING_NODES}
    nodes[layout.CLUSTER_ID] = TreeNode(layout.write_cluster_id("c"), 0)
    nodes[layout.CONTROLLER_EPOCH] = TreeNode(b"1", 0)
    state = PartitionState(1, 0, (1,), (1,), 0)
    for topic, partitions in (*((f"t{number}", 1) for number in range(3_000)), ("large", 5_000)):
        data = layout.write_topic(UUID(int=1), [layout.Assignment((1,))] * partitions)
        nodes[layout.topic_path(topic)] = TreeNode(data, 0)
        nodes[layout.partitions_path(topic)] = TreeNode(b"", 0)
        for partition in range(partitions):
            nodes[layout.partition_path(topic, partition)] = TreeNode(b"", 0)
            nodes[layout.state_path(topic, partition)] = TreeNode(layout.write_state(state, 1), 0)
    assert sum(1 for _ in load_image(nodes, 1)) >= 3_000 // 700 + 5_000 // 1_300
    assert sum(1 for _ in healing_writes(nodes)) >= 4
    marked = nodes | {layout.deleted_topic_path("t5"): TreeNode(b"", 0)}
    paths = [write.path for write in decided(healing_writes(marked))]
    assert set(paths[1:]) == {
        layout.state_path("t5", 0),
        layout.partition_path("t5", 0),
        layout.partitions_path("t5"),
        layout.topic_path("t5"),
        layout.deleted_topic_path("t5"),
    }
