import sys
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from ottla.config.listener import Endpoint
from ottla.controller.image import (
    BrokerAppeared,
    BrokerConfigChanged,
    BrokerImage,
    BrokerVanished,
    ClusterImage,
    ConfigImage,
    ControllerChanged,
    PartitionsAdded,
    PartitionState,
    TopicConfigChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)


def state(leader: int = 1) -> PartitionState:
    return PartitionState(leader, 0, (leader,), (leader,), 0)


def topic(name: str = "t", number: int = 1, partitions: int = 2) -> TopicImage:
    return TopicImage(name, UUID(int=number), tuple(state() for _ in range(partitions)), {})


def test_deltas_build_the_image_and_its_version() -> None:
    image = ClusterImage("cluster")
    image.apply(TopicCreated(topic()))
    assert image.version == 1
    assert image.topic("t") is image.topic_by_id(UUID(int=1))
    assert image.partition("t", 1) == state()
    assert image.partition("t", 2) is None
    assert image.partition("none", 0) is None

    image.apply(TopicConfigChanged(replace(image.topics["t"], overrides={"a": "b"})))
    assert image.topics_by_id[UUID(int=1)].overrides == {"a": "b"}
    image.apply(PartitionsAdded(topic(partitions=3), 2))
    assert image.partition("t", 2) == state()

    endpoint = Endpoint("PLAINTEXT", "host", 1)
    image.apply(BrokerAppeared(BrokerImage(1, (endpoint,))))
    assert image.brokers[1].endpoint("PLAINTEXT") == endpoint
    assert image.brokers[1].endpoint("OTHER") is None
    image.apply(BrokerVanished(1))
    image.apply(BrokerVanished(1))
    assert image.brokers == {}
    image.apply(ControllerChanged(1, 9))
    assert (image.controller_id, image.controller_epoch) == (1, 9)
    image.apply(BrokerConfigChanged("1", ConfigImage({"a": "b"}, 0)))
    assert image.config("1").values == {"a": "b"}
    assert image.config("2").version is None
    image.apply(TopicDeleted(image.topics["t"]))
    assert image.topic("t") is None
    assert image.topic_by_id(UUID(int=1)) is None


def test_objects_that_were_read_do_not_change() -> None:
    image = ClusterImage("cluster")
    image.apply(TopicCreated(topic()))
    kept = image.topics["t"]
    image.apply(PartitionsAdded(topic(partitions=3), 2))
    assert len(kept.partitions) == 2


def test_a_topic_cannot_be_created_twice() -> None:
    image = ClusterImage("cluster")
    image.apply(TopicCreated(topic()))
    with pytest.raises(AssertionError):
        image.apply(TopicCreated(topic()))
    with pytest.raises(AssertionError):
        image.apply(TopicConfigChanged(topic("other")))


def test_collisions_come_and_go_with_topics() -> None:
    image = ClusterImage("cluster")
    image.apply(TopicCreated(topic("a.b", 1)))
    assert image.colliding("a_b") == "a.b"
    assert image.colliding("a-b") is None
    image.apply(TopicDeleted(image.topics["a.b"]))
    assert image.colliding("a_b") is None


def test_internal_topics() -> None:
    assert topic("__consumer_offsets").is_internal
    assert not topic("__others").is_internal


def test_ten_thousand_partitions_share_few_states() -> None:
    image = ClusterImage("cluster")
    image.apply(TopicCreated(topic(partitions=10_000)))
    partitions = image.topics["t"].partitions
    assert len({id(each) for each in partitions}) == 1
    assert sys.getsizeof(partitions) < 100_000


def test_a_broker_is_found_by_each_of_its_listeners(
    image: ClusterImage, add_topic: Callable[..., None]
) -> None:
    assert sorted(image.brokers) == [1, 2, 3]
    endpoint = image.brokers[2].endpoint("PLAINTEXT")
    assert endpoint is not None
    assert endpoint.host == "host2"
