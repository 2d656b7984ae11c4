"""Encodes metadata deltas as JSON lists, to send them from the controller to the brokers.

A delta is a list whose first member is its kind. Partitions with the same state (most of a
cluster's) share one entry of a table of states. A change carries only the changed partitions:

    [leader, leader_epoch, replicas, isr, partition_epoch, adding, removing]    a state
    [name, id, node_version, config_version, overrides, [number of state, ...]]  a topic

The topics and states of a snapshot are lists of texts, each the JSON of some: JSON of megabytes
would be written and read without a pause, but texts inside of it are copied only.

Readers trust the texts: they come from a broker of the same cluster. Even so, a text that
cannot be read raises DeltaTextError and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final
from uuid import UUID

from ottla.config.listener import Endpoint
from ottla.controller.differences import all_but_topics
from ottla.controller.image import (
    BrokerAppeared,
    BrokerConfigChanged,
    BrokerImage,
    BrokerVanished,
    ClusterImage,
    ConfigImage,
    ControllerChanged,
    DirectoryChanged,
    DirectoryImage,
    FeatureRange,
    FeaturesChanged,
    GroupConfigChanged,
    MetadataDelta,
    PartitionsAdded,
    PartitionsChanged,
    PartitionState,
    ProducerIdsReserved,
    QuotaConfigChanged,
    TopicConfigChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
    UserConfigChanged,
)
from ottla.controller.plan import Step

STATES_A_TEXT: Final = 2_000
_CHANGED: Final[dict[str, Callable[[str, ConfigImage], MetadataDelta]]] = {
    "broker config": BrokerConfigChanged,
    "user config": UserConfigChanged,
    "group config": GroupConfigChanged,
    "quota config": QuotaConfigChanged,
}
BYTES_A_US: Final = 40
"""So many bytes of JSON are read in a microsecond, about."""


class DeltaTextError(ValueError):
    """The text is not a delta, or does not fit this image; the message gives the reason."""


class _States:
    """Numbers the states, each state once."""

    def __init__(self) -> None:
        self.numbers: dict[PartitionState, int] = {}

    def number(self, state: PartitionState) -> int:
        return self.numbers.setdefault(state, len(self.numbers))

    def table(self) -> list[list[Any]]:
        return [list(state) for state in self.numbers]


def encode_delta(delta: MetadataDelta) -> list[Any]:
    """Encode one delta. It can be decoded without the others."""
    match delta:
        case TopicCreated(topic):
            states = _States()
            text = _topic_text(topic, states)
            return ["created", states.table(), text]
        case TopicDeleted(topic, by_request):
            return ["deleted" if by_request else "lacking", topic.name, topic.topic_id.hex]
        case PartitionsAdded(topic, first):
            return ["added", *_changes_text(topic, range(first, len(topic.partitions))), first]
        case PartitionsChanged(topic, partitions):
            return ["changed", *_changes_text(topic, partitions)]
        case TopicConfigChanged(topic):
            return ["topic config", topic.name, topic.config_version, dict(topic.overrides)]
        case (
            BrokerConfigChanged(name, config)
            | UserConfigChanged(name, config)
            | GroupConfigChanged(name, config)
            | QuotaConfigChanged(name, config)
        ):
            kind = next(kind for kind, made in _CHANGED.items() if made is type(delta))
            return [kind, name, config.version, dict(config.values)]
        case BrokerAppeared(broker):
            return ["broker", _broker_text(broker)]
        case BrokerVanished(broker_id):
            return ["broker gone", broker_id]
        case ControllerChanged(broker_id, epoch):
            return ["controller", broker_id, epoch]
        case ProducerIdsReserved(next_id, version):
            return ["producer ids", next_id, version]
        case FeaturesChanged(levels, version):
            return ["features", dict(levels), version]
        case DirectoryChanged(broker_id, directory):
            if directory is None:
                return ["directory", broker_id, None]
            known = [directory.directory_id, directory.epoch, directory.version]
            return ["directory", broker_id, known]


def decode_delta(text: Any, image: ClusterImage) -> MetadataDelta:
    """The inverse of `encode_delta`; `image` is the image that the delta will change.

    Raises DeltaTextError.
    """
    try:
        return _decode(text[0], text[1:], image)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise DeltaTextError(f"not a delta: {str(text)[:80]}: {error!r}") from None


def encode_snapshot(image: ClusterImage) -> Generator[None, None, dict[str, Any]]:
    """A whole image as it is at the first step, with one table of states for all topics."""
    states = _States()
    images = tuple(image.topics.values())
    others = [encode_delta(delta) for delta in all_but_topics(image)]
    step = Step()
    topics: list[str] = []
    part: list[list[Any]] = []
    for each in images:
        if step.is_full(4 + len(each.partitions) // 3):
            topics.append(_json(part))
            part = []
            yield
        part.append(_topic_text(each, states))
    topics.append(_json(part))
    numbered = iter(states.numbers)
    table: list[str] = []
    while some := list(islice(numbered, STATES_A_TEXT)):
        if step.is_full(2 * len(some)):
            yield
        table.append(_json(some))
    text = {"cluster": image.cluster_id, "deltas": others, "topics": topics}
    return {**text, "states": table}


def decode_snapshot(text: Any) -> Generator[None, None, ClusterImage]:
    """The inverse of `encode_snapshot`, in steps (see `plan`). Raises DeltaTextError."""
    step = Step()
    try:
        image = ClusterImage(text["cluster"])
        for delta in text["deltas"]:
            image.apply(decode_delta(delta, image))
        states: list[PartitionState] = []
        for part in text["states"]:
            if step.is_full(2 * STATES_A_TEXT):
                yield
            states += map(_state, json.loads(part))
        for part in text["topics"]:
            if step.is_full(len(part) // BYTES_A_US):
                yield
            for topic in json.loads(part):
                if step.is_full(20 + len(topic[-1]) // 10):
                    yield
                image.apply(TopicCreated(_topic(topic, states)))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise DeltaTextError(f"no snapshot: {error!r}") from None
    return image


def _json(rows: Sequence[Any]) -> str:
    return json.dumps(rows, separators=(",", ":"))


def _topic_text(topic: TopicImage, states: _States) -> list[Any]:
    numbers = list(map(states.number, topic.partitions))
    versions = (topic.node_version, topic.config_version)
    return [topic.name, topic.topic_id.hex, *versions, dict(topic.overrides), numbers]


def _changes_text(topic: TopicImage, partitions: Iterable[int]) -> list[Any]:
    states = _States()
    changed = list(partitions)
    numbers = [states.number(topic.partitions[each]) for each in changed]
    id_and_version = [topic.topic_id.hex, topic.node_version]
    return [topic.name, *id_and_version, states.table(), changed, numbers]


def _broker_text(broker: BrokerImage) -> list[Any]:
    endpoints = [[each.name, each.host, each.port, each.protocol] for each in broker.endpoints]
    incarnation = [broker.epoch, broker.directory_id, broker.first_epoch]
    features = [list(each) for each in broker.features]
    return [broker.broker_id, endpoints, broker.rack, *incarnation, features]


def _decode(kind: str, rest: Sequence[Any], image: ClusterImage) -> MetadataDelta:
    match kind, rest:
        case "created", [states, topic]:
            return TopicCreated(_topic(topic, list(map(_state, states))))
        case "deleted", [name, topic_id]:
            return TopicDeleted(_known(image, name, topic_id))
        case "lacking", [name, topic_id]:
            return TopicDeleted(_known(image, name, topic_id), by_request=False)
        case "added", [*change, first]:
            return PartitionsAdded(_changed_topic(change, image)[0], first)
        case "changed", change:
            return PartitionsChanged(*_changed_topic(change, image))
        case "topic config", [name, version, values]:
            topic = image.topics[name]
            return TopicConfigChanged(replace(topic, overrides=values, config_version=version))
        case (
            ("broker config" | "user config" | "group config" | "quota config"),
            [name, version, values],
        ):
            return _CHANGED[kind](name, ConfigImage(values, version))
        case "broker", [broker]:
            return BrokerAppeared(_broker(*broker))
        case "broker gone", [broker_id]:
            return BrokerVanished(broker_id)
        case "controller", [broker_id, epoch]:
            return ControllerChanged(broker_id, epoch)
        case "producer ids", [next_id, version]:
            return ProducerIdsReserved(next_id, version)
        case "features", [levels, version]:
            return FeaturesChanged(levels, version)
        case "directory", [broker_id, known]:
            return DirectoryChanged(broker_id, None if known is None else DirectoryImage(*known))
    raise DeltaTextError(f"no such kind: {kind}")


def _state(text: Sequence[Any]) -> PartitionState:
    leader, leader_epoch, replicas, isr, partition_epoch, adding, removing = text
    return PartitionState(
        leader,
        leader_epoch,
        tuple(replicas),
        tuple(isr),
        partition_epoch,
        tuple(adding),
        tuple(removing),
    )


def _topic(text: Sequence[Any], states: Sequence[PartitionState]) -> TopicImage:
    name, topic_id, node_version, config_version, overrides, numbers = text
    partitions = tuple([states[number] for number in numbers])
    return TopicImage(name, UUID(hex=topic_id), partitions, overrides, node_version, config_version)


def _known(image: ClusterImage, name: str, topic_id: str) -> TopicImage:
    topic = image.topics[name]
    if topic.topic_id.hex != topic_id:
        raise DeltaTextError(f"another topic {name} than {topic_id}")
    return topic


def _changed_topic(text: Sequence[Any], image: ClusterImage) -> tuple[TopicImage, tuple[int, ...]]:
    name, topic_id, node_version, table, changed, numbers = text
    topic = _known(image, name, topic_id)
    states = list(map(_state, table))
    partitions = list(topic.partitions)
    for at, number in zip(changed, numbers, strict=True):
        if at == len(partitions):
            partitions.append(states[number])
        else:
            partitions[at] = states[number]
    grown = replace(topic, partitions=tuple(partitions), node_version=node_version)
    return grown, tuple(changed)


def _broker(
    broker_id: int,
    endpoints: Any,
    rack: str | None,
    epoch: int,
    directory_id: str | None,
    first_epoch: int,
    features: Any,
) -> BrokerImage:
    parsed = tuple(Endpoint(*each) for each in endpoints)
    ranges = tuple(FeatureRange(*each) for each in features)
    return BrokerImage(broker_id, parsed, rack, epoch, directory_id, first_epoch, ranges)
