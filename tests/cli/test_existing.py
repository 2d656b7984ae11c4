"""Topics, partitions and brokers that were named."""

import pytest
from tests.client.fake_cluster import FakeCluster

from ottla.cli.existing import check_brokers, existing_topics, partitions_of
from ottla.cli.failures import Failed


def test_the_first_missing_topic_is_named() -> None:
    client = FakeCluster().client()
    assert list(existing_topics(client, ["t"])) == ["t"]
    with pytest.raises(Failed, match=r"there is no topic 'T'\. Did you mean 't'\?"):
        existing_topics(client, ["t", "T"])


def test_partitions_are_chosen_in_order() -> None:
    topics = existing_topics(FakeCluster().client(), ["t"])
    assert partitions_of(topics, [2, 0]) == [("t", 0), ("t", 2)]
    assert len(partitions_of(topics, None)) == 3
    with pytest.raises(Failed, match="topic 't' has partitions 0 to 2, not 3"):
        partitions_of(topics, [3])


def test_a_broker_that_is_not_live() -> None:
    check_brokers([1], {1: None})
    with pytest.raises(Failed, match="there is no live broker '2'"):
        check_brokers([1, 2], {1: None})
