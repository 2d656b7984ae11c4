"""How large topics are."""

from tests.client.stored_folders import FOLDERS

from ottla.client.admin.stored_replicas import leader_sizes
from ottla.client.topic_partition import TopicPartition


def test_a_topic_is_as_large_as_its_leaders_store() -> None:
    assert leader_sizes(FOLDERS, {TopicPartition("big", 0): 1, TopicPartition("small", 0): 2}) == {
        "big": 2_500_000
    }
