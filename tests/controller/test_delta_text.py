import json
from dataclasses import replace
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
    text = json.dumps(encode_snapshot(large), separators=(",", ":"))
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
    for text in ([], ["else"], ["changed", 1], {}, None, 5, ["deleted", "none", ""], gone):
        with pytest.raises(DeltaTextError, match="not a delta"):
            decode_delta(text, large)
    for snapshot in ({}, None, [], {"cluster": "c", "deltas": [["else"]]}):
        with pytest.raises(DeltaTextError):
            decided(decode_snapshot(snapshot))


def test_the_snapshot_of_many_topics_is_decoded_in_steps(large: ClusterImage) -> None:
    """A broker that starts, or that is far behind, gets all topics at once."""
    (state, *_) = large.topics["t1"].partitions
    image = ClusterImage("c")
    for number in range(5_000):
        image.apply(TopicCreated(TopicImage(f"t{number}", UUID(int=number), (state,), {})))
    assert sum(1 for _ in decode_snapshot(encode_snapshot(image))) >= 5
