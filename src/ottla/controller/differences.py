"""The metadata deltas between two images: how a broker applies a snapshot.

A snapshot holds the deltas between an empty image and the controller's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace

from ottla.controller.image import (
    NO_CONFIG,
    BrokerAppeared,
    BrokerConfigChanged,
    BrokerVanished,
    ClusterImage,
    ControllerChanged,
    DirectoryChanged,
    FeaturesChanged,
    GroupConfigChanged,
    MetadataDelta,
    PartitionsAdded,
    PartitionsChanged,
    ProducerIdsReserved,
    QuotaConfigChanged,
    TopicConfigChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
    UserConfigChanged,
)
from ottla.controller.plan import Step, decided


def differences(old: ClusterImage, new: ClusterImage) -> list[MetadataDelta]:
    """As `differences_in_steps`, at once."""
    return decided(differences_in_steps(old, new))


def differences_in_steps(
    old: ClusterImage, new: ClusterImage
) -> Generator[None, None, list[MetadataDelta]]:
    """The deltas that make `old` equal to `new` when they are applied in this order. The images
    stay as they are meanwhile.

    Brokers come before topics, so that a new leader's address is known. A deleted topic comes
    before a new one of the same name. Directories come after topics: a broker that sees its own
    knows that the controller chose the earlier leaders with knowledge of it
    (`replication.incarnation`). The cluster's id needs no delta.
    """
    deltas = list(_before_topics(old, new))
    step = Step()
    for found in _topics(old, new):
        if isinstance(found, int):
            if step.is_full(1 + found // 4):
                yield
        else:
            deltas.append(found)
    deltas += _after_topics(old, new)
    return deltas


def snapshot(image: ClusterImage) -> list[MetadataDelta]:
    """The deltas that build the image from an empty one."""
    return differences(ClusterImage(image.cluster_id), image)


def all_but_topics(image: ClusterImage) -> list[MetadataDelta]:
    """The same, without the topics."""
    empty = ClusterImage(image.cluster_id)
    return [*_before_topics(empty, image), *_after_topics(empty, image)]


def _before_topics(old: ClusterImage, new: ClusterImage) -> Iterator[MetadataDelta]:
    if (old.controller_id, old.controller_epoch) != (new.controller_id, new.controller_epoch):
        yield ControllerChanged(new.controller_id, new.controller_epoch)
    yield from _brokers(old, new)
    for resource in sorted(old.configs.keys() | new.configs.keys()):
        config = new.configs.get(resource, NO_CONFIG)
        if config != old.configs.get(resource, NO_CONFIG):
            yield BrokerConfigChanged(resource, config)
    for user in sorted(old.users.keys() | new.users.keys()):
        config = new.users.get(user, NO_CONFIG)
        if config != old.users.get(user, NO_CONFIG):
            yield UserConfigChanged(user, config)
    for group in sorted(old.groups.keys() | new.groups.keys()):
        config = new.groups.get(group, NO_CONFIG)
        if config != old.groups.get(group, NO_CONFIG):
            yield GroupConfigChanged(group, config)
    for path in sorted(old.quotas.keys() | new.quotas.keys()):
        config = new.quotas.get(path, NO_CONFIG)
        if config != old.quotas.get(path, NO_CONFIG):
            yield QuotaConfigChanged(path, config)
    features = (new.features, new.features_version)
    if (old.features, old.features_version) != features:
        yield FeaturesChanged(*features)


def _after_topics(old: ClusterImage, new: ClusterImage) -> Iterator[MetadataDelta]:
    for number in sorted(old.directories.keys() | new.directories.keys()):
        directory = new.directories.get(number)
        if directory != old.directories.get(number):
            yield DirectoryChanged(number, directory)
    ids = (new.next_producer_id, new.producer_ids_version)
    if (old.next_producer_id, old.producer_ids_version) != ids:
        yield ProducerIdsReserved(*ids)


def _brokers(old: ClusterImage, new: ClusterImage) -> Iterator[MetadataDelta]:
    for number, broker in old.brokers.items():
        now = new.brokers.get(number)
        # Another epoch is another incarnation: the broker was away in between, noticed or not.
        if now is None or now.epoch != broker.epoch:
            yield BrokerVanished(number)
    for number, broker in new.brokers.items():
        if old.brokers.get(number) != broker:
            yield BrokerAppeared(broker)


def _topics(old: ClusterImage, new: ClusterImage) -> Iterator[MetadataDelta | int]:
    """Before each topic how many partitions it has: their comparison takes time."""
    stayed: list[tuple[TopicImage, TopicImage]] = []
    for name, topic in old.topics.items():
        yield 0
        now = new.topics.get(name)
        if (
            now is None
            or now.topic_id != topic.topic_id
            or len(now.partitions) < len(topic.partitions)
        ):
            yield TopicDeleted(topic, by_request=False)
        elif now is not topic:
            stayed.append((topic, now))
    for name, topic in new.topics.items():
        yield 0
        before = old.topics.get(name)
        if (
            before is None
            or before.topic_id != topic.topic_id
            or len(topic.partitions) < len(before.partitions)
        ):
            yield TopicCreated(topic)
    for before, topic in stayed:
        yield len(topic.partitions)
        yield from _topic(before, topic)


def _topic(old: TopicImage, new: TopicImage) -> Iterator[MetadataDelta]:
    """The deltas of one topic. Each is one kind of change, so subscribers do not compare."""
    count = len(old.partitions)
    if len(new.partitions) > count:
        grown = old.partitions + new.partitions[count:]
        old = replace(old, partitions=grown, node_version=new.node_version)
        yield PartitionsAdded(old, count)
    changed = tuple(
        at
        for at, (before, now) in enumerate(zip(old.partitions, new.partitions, strict=True))
        if before != now
    )
    if changed or old.node_version != new.node_version:
        old = replace(old, partitions=new.partitions, node_version=new.node_version)
        yield PartitionsChanged(old, changed)
    if (old.overrides, old.config_version) != (new.overrides, new.config_version):
        yield TopicConfigChanged(new)
