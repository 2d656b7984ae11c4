from collections.abc import Callable
from dataclasses import replace
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
from ottla.controller.image import EVERY_BROKER, BrokerAppeared, ClusterImage, FeaturesChanged
from ottla.controller.layout import LayoutError
from ottla.controller.loading import first_writes, load_image
from ottla.controller.plan import Plan, decided
from ottla.controller.producer_ids import reserve_producer_ids
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
    image = load_image(tree(store), 1)
    assert (image.cluster_id, image.controller_epoch, image.topics) == ("cluster", 0, {})
    assert (image.features, image.features_version) == ({"transaction.version": 2}, 0)


def test_the_loaded_image_equals_the_one_that_was_written(
    store: EmbeddedStore,
    image: ClusterImage,
    config: BrokerConfig,
    new_id: Callable[[], UUID],
) -> None:
    def carry_out(plan: Plan[object]) -> None:
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
    image.apply(FeaturesChanged(DEFAULT_LEVELS, 0))
    for level in (1, 0):
        update = FeatureUpdate("transaction.version", level, UpgradeType.SAFE_DOWNGRADE)
        carry_out(decided(update_features([update], image, 1)))

    loaded = load_image(tree(store), 1)
    assert loaded.topics == image.topics
    assert loaded.topics_by_id == image.topics_by_id
    assert len({broker.epoch for broker in loaded.brokers.values()}) == 3
    brokers = {number: replace(each, epoch=-1) for number, each in loaded.brokers.items()}
    assert brokers == image.brokers
    assert loaded.configs == image.configs
    assert loaded.next_producer_id == image.next_producer_id == 2000
    assert loaded.producer_ids_version == image.producer_ids_version
    assert (loaded.features, loaded.features_version) == (image.features, 2) == ({}, 2)
    assert loaded.colliding("u_v") == "u.v"


def test_a_missing_state_is_an_error_that_names_it(store: EmbeddedStore) -> None:
    data = layout.write_topic(UUID(int=1), [layout.Assignment((1,))])
    store.multi([Create(layout.topic_path("t"), data)], 1)
    with pytest.raises(LayoutError, match="/brokers/topics/t/partitions/0/state: missing"):
        load_image(tree(store), 1)


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
    image = load_image(tree(store), 2)
    assert image.brokers == {}
    assert image.config("1").values == {}
    assert (image.next_producer_id, image.producer_ids_version) == (0, 0)
    assert reserve_producer_ids(image, 2).reply == (0, 1000)
