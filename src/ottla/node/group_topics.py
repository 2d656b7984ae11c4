"""The cluster's topics as consumer groups see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ottla.controller.image import ClusterImage
from ottla.groups.consumer.topics import Topic, Topics


class ImageTopics(Mapping[str, Topic]):
    """The topics of an image by name; nothing is copied."""

    def __init__(self, image: ClusterImage) -> None:
        self._topics = image.topics

    def __getitem__(self, name: str) -> Topic:
        topic = self._topics[name]
        return Topic(topic.topic_id, len(topic.partitions))

    def __contains__(self, name: object) -> bool:
        return name in self._topics

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)


def topics_of(image: ClusterImage) -> Topics:
    """Those of the image, as it is now and as it changes."""
    return Topics(image.topics_version, ImageTopics(image))
