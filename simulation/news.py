"""News on its way: from the controller's feed as text, into a broker's image as differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.controller.differences import differences
from ottla.controller.image import (
    NO_LEADER,
    ControllerChanged,
    DirectoryChanged,
    News,
    PartitionsAdded,
    PartitionsChanged,
    TopicCreated,
    TopicDeleted,
)
from ottla.controller.news_text import decode_news, decode_snapshot
from simulation.messages import Told

if TYPE_CHECKING:
    from simulation.broker import Broker


def take_in(broker: Broker, told: Told) -> None:
    """Brings the broker's image and its replicas up to date, one piece of news after the other."""
    image = broker.image
    if told.is_snapshot:
        for news in differences(image, decode_snapshot(told.news)):
            _tell(broker, news)
        image.version = told.version
    elif told.version - len(told.news) == image.version:
        for text in told.news:
            _tell(broker, decode_news(text, image))
    else:
        return  # an answer to an earlier question: what it tells is known (seed 740)
    assert image.version == told.version


def _tell(broker: Broker, news: News) -> None:
    broker.image.apply(news)
    replicas = broker.replicas
    match news:
        case TopicCreated(topic) | TopicDeleted(topic):
            replicas.take_in(f"{topic.name}-{index}" for index in range(len(topic.partitions)))
        case PartitionsAdded(topic, first):
            count = len(topic.partitions)
            replicas.take_in(f"{topic.name}-{index}" for index in range(first, count))
        case PartitionsChanged(topic, partitions):
            replicas.take_in(f"{topic.name}-{index}" for index in partitions)
        case DirectoryChanged(broker_id):
            if broker_id == broker.number:
                replicas.known()
        case ControllerChanged(controller, _):
            assert controller != NO_LEADER
