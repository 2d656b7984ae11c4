"""A small cluster for the deciders: three brokers, and topics made by the real decider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from ottla.config.broker import BrokerConfig
from ottla.config.listener import Endpoint
from ottla.controller.image import BrokerAppeared, BrokerImage, ClusterImage, ControllerChanged
from ottla.controller.topics import NewTopic, create_topics
from ottla.testing.zookeeper_server import ZooKeeperError, ZooKeeperServer, zookeeper_command


@pytest.fixture
def config() -> BrokerConfig:
    return BrokerConfig()


@pytest.fixture
def image() -> ClusterImage:
    image = ClusterImage("cluster")
    image.apply(ControllerChanged(1, 7))
    for number in (1, 2, 3):
        endpoint = Endpoint("PLAINTEXT", f"host{number}", 9092)
        image.apply(BrokerAppeared(BrokerImage(number, (endpoint,))))
    return image


@pytest.fixture
def new_id() -> Callable[[], UUID]:
    numbers: Iterator[int] = iter(range(1, 1000))
    return lambda: UUID(int=next(numbers))


@pytest.fixture
def add_topic(
    image: ClusterImage, config: BrokerConfig, new_id: Callable[[], UUID]
) -> Callable[[NewTopic], None]:
    """Puts a topic into the image."""

    def add(topic: NewTopic) -> None:
        plan = create_topics([topic], image, config, new_id=new_id, start=0)
        assert not plan.reply[0].outcome.failed, plan.reply
        for news in plan.news:
            image.apply(news)

    return add


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """A real ZooKeeper; each test takes a chroot of its own."""
    try:
        zookeeper_command()
    except ZooKeeperError as error:
        pytest.skip(str(error))
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.stop()
