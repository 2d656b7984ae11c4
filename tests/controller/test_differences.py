"""For any two images: the differences, applied to the first, give the second; also as text."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.config.listener import Endpoint
from ottla.controller.delta_text import decode_delta, decode_snapshot, encode_delta, encode_snapshot
from ottla.controller.differences import differences, differences_in_steps, snapshot
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
from ottla.controller.plan import decided

few = st.integers(0, 3)
ids = st.lists(few, unique=True, max_size=3).map(tuple)
states = st.builds(PartitionState, st.integers(-1, 3), few, ids, ids, few, ids, ids)
brokers = st.builds(
    BrokerImage,
    st.just(0),
    st.builds(Endpoint, st.sampled_from("AB"), st.just("h"), few).map(lambda each: (each,)),
    st.sampled_from([None, "r"]),
    few,
    st.sampled_from([None, "x", "y"]),
)
ranges = st.lists(st.builds(FeatureRange, st.sampled_from("fg"), few, few), max_size=2).map(tuple)
texts = st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2)
topics = st.builds(
    TopicImage,
    st.just(""),
    few.map(lambda number: UUID(int=number)),
    st.lists(states, min_size=1, max_size=4).map(tuple),
    texts,
    few,
    st.none() | few,
)


@st.composite
def images(draw: st.DrawFn) -> ClusterImage:
    image = ClusterImage("c")
    image.apply(ControllerChanged(draw(few), draw(few)))
    for number, broker in draw(st.dictionaries(few, brokers, max_size=3)).items():
        named = replace(broker, broker_id=number, features=draw(ranges))
        image.apply(BrokerAppeared(named))
    for number in draw(st.sets(few, max_size=2)):
        image.apply(
            DirectoryChanged(number, DirectoryImage(draw(st.sampled_from("xy")), draw(few), 0))
        )
    for resource, values in draw(st.dictionaries(st.sampled_from(["", "1"]), texts)).items():
        image.apply(BrokerConfigChanged(resource, ConfigImage(values, draw(few))))
    for user, values in draw(st.dictionaries(st.sampled_from(["", "a"]), texts)).items():
        image.apply(UserConfigChanged(user, ConfigImage(values, draw(few))))
    for group, values in draw(st.dictionaries(st.sampled_from(["g", "h"]), texts)).items():
        image.apply(GroupConfigChanged(group, ConfigImage(values, draw(few))))
    places = st.sampled_from(["ips/1", "clients/c", "users/a/clients/c"])
    for place, values in draw(st.dictionaries(places, texts)).items():
        image.apply(QuotaConfigChanged(place, ConfigImage(values, draw(few))))
    chosen = draw(st.dictionaries(st.sampled_from(["t", "u", "u.v"]), topics, max_size=3))
    for number, (name, topic) in enumerate(chosen.items()):
        topic_id = UUID(int=topic.topic_id.int * 4 + number)
        image.apply(
            TopicCreated(
                TopicImage(
                    name,
                    topic_id,
                    topic.partitions,
                    topic.overrides,
                    topic.node_version,
                    topic.config_version,
                )
            )
        )
    image.apply(ProducerIdsReserved(draw(few), draw(st.none() | few)))
    levels = draw(st.dictionaries(st.sampled_from("fg"), few, max_size=2))
    image.apply(FeaturesChanged(levels, draw(st.none() | few)))
    return image


def content(image: ClusterImage) -> dict[str, object]:
    return {
        key: value for key, value in vars(image).items() if key not in ("version", "topics_version")
    }


@given(images(), images())
def test_differences_lead_from_one_image_to_the_other(old: ClusterImage, new: ClusterImage) -> None:
    for delta in differences(old, new):
        old.apply(decode_delta(json.loads(json.dumps(encode_delta(delta))), old))
    assert content(old) == content(new)
    assert differences(old, new) == []


@given(images())
def test_a_snapshot_is_the_whole_image(image: ClusterImage) -> None:
    built = ClusterImage("c")
    for delta in snapshot(image):
        built.apply(delta)
    assert content(built) == content(image)
    assert content(
        decided(decode_snapshot(json.loads(json.dumps(decided(encode_snapshot(image))))))
    ) == content(image)


STATE = PartitionState(1, 0, (1, 2), (1, 2), 0)
TOPIC = TopicImage("t", UUID(int=1), (STATE, STATE), {})


def one_topic(topic: TopicImage) -> ClusterImage:
    image = ClusterImage("c")
    image.apply(TopicCreated(topic))
    return image


def test_each_delta_is_one_kind_of_change() -> None:
    moved = STATE._replace(leader=2, leader_epoch=1)
    grown = TopicImage("t", UUID(int=1), (STATE, moved, STATE), {"a": "1"}, 1, 0)
    deltas = differences(one_topic(TOPIC), one_topic(grown))
    assert [type(each) for each in deltas] == [
        PartitionsAdded,
        PartitionsChanged,
        TopicConfigChanged,
    ]
    assert isinstance(deltas[0], PartitionsAdded)
    assert (deltas[0].first, deltas[0].topic.partitions) == (2, (STATE, STATE, STATE))
    assert isinstance(deltas[1], PartitionsChanged)
    assert deltas[1].partitions == (1,)


def test_the_same_name_with_another_id_is_another_topic() -> None:
    again = TopicImage("t", UUID(int=2), (STATE,), {})
    deltas = differences(one_topic(TOPIC), one_topic(again))
    assert deltas == [TopicDeleted(TOPIC, by_request=False), TopicCreated(again)]


def test_a_broker_with_another_epoch_vanishes_first() -> None:
    old, new = ClusterImage("c"), ClusterImage("c")
    old.apply(BrokerAppeared(BrokerImage(1, (), None, 5)))
    back = BrokerImage(1, (), None, 9)
    new.apply(BrokerAppeared(back))
    assert differences(old, new) == [BrokerVanished(1), BrokerAppeared(back)]


def test_many_topics_are_compared_in_steps() -> None:
    def image() -> ClusterImage:
        made = ClusterImage("c")
        for number in range(100):
            states = (STATE,) * 1_000
            made.apply(TopicCreated(TopicImage(f"t{number}", UUID(int=number), states, {})))
        return made

    assert sum(1 for _ in differences_in_steps(image(), image())) >= 2
