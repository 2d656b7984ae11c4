import json
from dataclasses import replace
from uuid import UUID

import pytest

from ottla.controller.image import (
    ClusterImage,
    PartitionsChanged,
    PartitionState,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)
from ottla.controller.news_text import (
    NewsTextError,
    decode_news,
    decode_snapshot,
    encode_news,
    encode_snapshot,
)


@pytest.fixture
def large() -> ClusterImage:
    """10,000 partitions in 100 topics."""
    image = ClusterImage("c")
    for number in range(100):
        partitions = tuple(
            PartitionState(at % 3, 4, (at % 3, (at + 1) % 3), (at % 3, (at + 1) % 3), number % 7)
            for at in range(100)
        )
        image.apply(TopicCreated(TopicImage(f"t{number}", UUID(int=number), partitions, {})))
    return image


def test_a_large_snapshot_is_small(large: ClusterImage) -> None:
    text = json.dumps(encode_snapshot(large), separators=(",", ":"))
    assert len(text) < 6 * 10_000
    assert decode_snapshot(json.loads(text)).topics == large.topics


def test_a_change_carries_the_changed_partitions_only(large: ClusterImage) -> None:
    topic = large.topics["t5"]
    states = list(topic.partitions)
    for at in (3, 50):
        states[at] = states[at]._replace(leader=-1, adding=(9,))
    news = PartitionsChanged(replace(topic, partitions=tuple(states), node_version=3), (3, 50))
    text = json.dumps(encode_news(news))
    assert len(text) < 300
    assert decode_news(json.loads(text), large) == news


def test_what_is_no_news_says_so(large: ClusterImage) -> None:
    stranger = TopicImage("t5", UUID(int=99), (), {})
    gone = encode_news(TopicDeleted(stranger))
    for text in ([], ["else"], ["changed", 1], {}, None, 5, ["deleted", "none", ""], gone):
        with pytest.raises(NewsTextError, match="no news"):
            decode_news(text, large)
    for snapshot in ({}, None, [], {"cluster": "c", "news": [["else"]]}):
        with pytest.raises(NewsTextError):
            decode_snapshot(snapshot)
