import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.listener import Endpoint
from ottla.controller import layout
from ottla.controller.image import (
    EVERY_BROKER,
    BrokerImage,
    DirectoryImage,
    FeatureRange,
    PartitionState,
)
from ottla.controller.layout import LayoutError

numbers = st.integers(0, 1000)
broker_lists = st.lists(numbers, min_size=1, max_size=5, unique=True).map(tuple)


assignments = st.builds(layout.Assignment, broker_lists, broker_lists | st.just(()), broker_lists)


@given(st.uuids(), st.lists(assignments, min_size=1, max_size=12))
def test_topics_round_trip(topic_id: UUID, partitions: list[layout.Assignment]) -> None:
    assert layout.read_topic("t", layout.write_topic(topic_id, partitions)) == (
        topic_id,
        tuple(partitions),
    )


@given(numbers, numbers, broker_lists, broker_lists, numbers, numbers)
def test_states_round_trip(
    leader: int,
    epoch: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    version: int,
    controller_epoch: int,
) -> None:
    state = PartitionState(leader, epoch, replicas, isr, version)
    data = layout.write_state(state, controller_epoch)
    assert layout.read_state("/path", data, version, layout.Assignment(replicas)) == state


def test_brokers_round_trip_with_every_listener() -> None:
    broker = BrokerImage(
        4,
        (Endpoint("PLAINTEXT", "host", 9092), Endpoint("INSIDE", "::1", 9093)),
        "rack",
        77,
        "folder",
        12,
        (FeatureRange("transaction.version", 0, 2),),
    )
    data = layout.write_broker(broker, 17)
    assert layout.read_broker(4, data, 77) == broker
    content = json.loads(data)
    assert (content["version"], content["host"], content["timestamp"]) == (5, "host", "17")
    assert content["features"] == {"transaction.version": {"min_version": 0, "max_version": 2}}
    assert content["endpoints"] == ["PLAINTEXT://host:9092", "INSIDE://[::1]:9093"]


@given(st.dictionaries(st.text(), st.text(), max_size=4))
def test_settings_round_trip(values: dict[str, str]) -> None:
    assert layout.read_config("/path", layout.write_config(values)) == values


def test_the_other_nodes_round_trip() -> None:
    assert layout.read_cluster_id(layout.write_cluster_id("abc")) == "abc"
    assert layout.read_producer_ids(layout.write_producer_ids(1, 0, 999)) == 999
    assert layout.read_features(layout.write_features({"f": 2, "g": 0})) == {"f": 2}
    assert layout.read_controller(layout.write_controller(3, 5)) == 3
    directory = DirectoryImage("abc", 7, 2)
    assert layout.read_directory("/path", layout.write_directory("abc", 7), 2) == directory
    assert layout.broker_resource("<default>") == EVERY_BROKER
    assert layout.broker_config_path(EVERY_BROKER) == "/config/brokers/<default>"
    assert layout.broker_config_path("3") == "/config/brokers/3"


def test_empty_nodes_of_kafka() -> None:
    assert layout.read_producer_ids(b"") == -1
    assert layout.read_config("/config/topics/t", b"") == {}


def test_a_topic_of_a_kafka_without_topic_ids_is_an_error_that_says_so() -> None:
    with pytest.raises(LayoutError, match=r"no topic_id.*inter\.broker\.protocol\.version"):
        layout.read_topic("t", b'{"version":1,"partitions":{"0":[1]}}')


@pytest.mark.parametrize("data", [b"1", b"[]", b"{}", b"\xff", b'{"config": {"a": 1}}', b"no"])
def test_invalid_content_is_an_error_that_names_the_node(data: bytes) -> None:
    readers = (
        lambda: layout.read_topic("t", data),
        lambda: layout.read_state(
            "/brokers/topics/t/partitions/0/state", data, 0, layout.Assignment((1,))
        ),
        lambda: layout.read_broker(1, data),
        lambda: layout.read_config("/config/topics/t", data),
        lambda: layout.read_cluster_id(data),
        lambda: layout.read_controller(data),
        lambda: layout.read_directory("/ottla/directories/1", data, 0),
        lambda: layout.read_producer_ids(data),
    )
    for read in readers:
        with pytest.raises(LayoutError, match=r"^/"):
            read()
