"""How metadata deltas reach a broker: as text from the controller, applied to its image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.controller.delta_text import decode_delta, decode_snapshot
from ottla.controller.differences import differences
from ottla.controller.image import (
    NO_LEADER,
    ControllerChanged,
    DirectoryChanged,
    MetadataDelta,
    PartitionsAdded,
    PartitionsChanged,
    TopicCreated,
    TopicDeleted,
)
from simulation.messages import Told

if TYPE_CHECKING:
    from simulation.broker import Broker


def take_in(broker: Broker, told: Told) -> None:
    """Brings the broker's image and its replicas up to date, one delta after the other."""
    image = broker.image
    if told.is_snapshot:
        for delta in differences(image, decode_snapshot(told.deltas)):
            _tell(broker, delta)
        image.version = told.version
    elif told.version - len(told.deltas) == image.version:
        for text in told.deltas:
            _tell(broker, decode_delta(text, image))
    else:
        return  # an answer to an earlier question: what it tells is known (seed 740)
    assert image.version == told.version


def _tell(broker: Broker, delta: MetadataDelta) -> None:
    broker.image.apply(delta)
    replicas = broker.replicas
    match delta:
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
