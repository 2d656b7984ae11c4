import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from ottla.controller.delta_text import (
    DeltaTextError,
    decode_delta,
    decode_snapshot,
    encode_delta,
    encode_snapshot,
)
from ottla.controller.image import (
    ClusterImage,
    PartitionsChanged,
    PartitionState,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)
from ottla.controller.plan import decided


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
    text = json.dumps(decided(encode_snapshot(large)), separators=(",", ":"))
    assert len(text) < 6 * 10_000
    assert decided(decode_snapshot(json.loads(text))).topics == large.topics


def test_a_change_carries_the_changed_partitions_only(large: ClusterImage) -> None:
    topic = large.topics["t5"]
    states = list(topic.partitions)
    for at in (3, 50):
        states[at] = states[at]._replace(leader=-1, adding=(9,))
    delta = PartitionsChanged(replace(topic, partitions=tuple(states), node_version=3), (3, 50))
    text = json.dumps(encode_delta(delta))
    assert len(text) < 300
    assert decode_delta(json.loads(text), large) == delta


def test_an_invalid_delta_is_an_error(large: ClusterImage) -> None:
    stranger = TopicImage("t5", UUID(int=99), (), {})
    gone = encode_delta(TopicDeleted(stranger))
    texts: list[Any] = [[], ["else"], ["changed", 1], {}, None, 5, ["deleted", "none", ""], gone]
    for text in texts:
        with pytest.raises(DeltaTextError, match="not a delta"):
            decode_delta(text, large)
    snapshots: list[Any] = [{}, None, [], {"cluster": "c", "deltas": [["else"]]}]
    for snapshot in snapshots:
        with pytest.raises(DeltaTextError):
            decided(decode_snapshot(snapshot))


@pytest.fixture
def many() -> ClusterImage:
    """5,000 topics of one partition."""
    image = ClusterImage("c")
    for number in range(5_000):
        states = (PartitionState(1, 0, (1,), (1,), 0),)
        image.apply(TopicCreated(TopicImage(f"t{number}", UUID(int=number), states, {})))
    return image


def test_the_snapshot_of_many_topics_is_made_and_read_in_steps(many: ClusterImage) -> None:
    """A broker that starts, or that is far behind, gets all topics at once."""
    assert sum(1 for _ in encode_snapshot(many)) >= 1
    assert sum(1 for _ in decode_snapshot(decided(encode_snapshot(many)))) >= 5


def test_no_text_of_a_snapshot_is_long(many: ClusterImage) -> None:
    """JSON is read without a pause: 0.1 s for 50,000 topics."""
    for number, topic in enumerate(list(many.topics.values())):
        states = (topic.partitions[0]._replace(partition_epoch=number),)
        many.apply(PartitionsChanged(replace(topic, partitions=states), (0,)))
    text = decided(encode_snapshot(many))
    assert len(text["topics"]) >= 2
    assert len(text["states"]) >= 2
    longest = max(map(len, (*text["topics"], *text["states"])))
    assert longest < 300_000, "10 ms"
    assert decided(decode_snapshot(json.loads(json.dumps(text)))).topics == many.topics
    for part in ("[", 5, None):
        for name in ("topics", "states"):
            with pytest.raises(DeltaTextError):
                decided(decode_snapshot(text | {name: [part, *text[name]]}))


def test_a_snapshot_is_the_image_of_its_first_step(many: ClusterImage) -> None:
    """The image may change between the steps."""
    before = dict(many.topics)
    steps = encode_snapshot(many)
    next(steps)
    many.apply(TopicDeleted(many.topics["t4999"]))
    decoded = decided(decode_snapshot(decided(steps)))
    assert decoded.topics == before
