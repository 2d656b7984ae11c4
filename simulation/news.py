"""News on its way: from the controller's feed as text, into a broker's image as differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.controller.differences import differences
from ottla.controller.image import (
    NO_LEADER,
    ControllerChanged,
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


def take_in(broker: Broker, told: Told) -> list[str]:
    """Brings the broker's image up to date; returns the partitions that changed by it."""
    image = broker.image
    if told.is_snapshot:
        new = decode_snapshot(told.news)
        changed = _changed(differences(image, new))
        new.version = told.version
        broker.image = new
        return changed
    if told.version - len(told.news) != image.version:
        return []  # an answer to an earlier question: what it tells is known (seed 740)
    changed = []
    for text in told.news:
        news = decode_news(text, image)
        image.apply(news)
        changed += _changed([news])
    assert image.version == told.version
    return changed


def _changed(many: list[News]) -> list[str]:
    names: list[str] = []
    for news in many:
        match news:
            case TopicCreated(topic) | TopicDeleted(topic):
                names += [f"{topic.name}-{index}" for index in range(len(topic.partitions))]
            case PartitionsAdded(topic, first):
                names += [f"{topic.name}-{index}" for index in range(first, len(topic.partitions))]
            case PartitionsChanged(topic, partitions):
                names += [f"{topic.name}-{index}" for index in partitions]
            case ControllerChanged(controller, _):
                assert controller != NO_LEADER
    return names
