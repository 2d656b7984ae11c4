"""1,000 members of the consumer protocol (KIP-848), which join at once and leave."""

from __future__ import annotations

from typing import Any

import pytest
from bench.epoch_members import EpochMembers
from bench.figures.consumer_groups import BEAT_SECONDS, SETTINGS
from bench.topics import create_topic
from confluent_kafka import ConsumerGroupState
from tests.system.test_consumer_groups import described

COUNT = 1_000


@pytest.mark.timeout(240)
def test_a_thousand_members_share_a_thousand_partitions(new_broker: Any) -> None:
    """Nobody is ever given what another member still has, and nobody is left without. That no
    heartbeat holds the loop is looked at after each test of this folder.
    """
    options = [word for each in SETTINGS.items() for word in ("--config", "=".join(each))]
    bootstrap = new_broker(*options).bootstrap
    create_topic(bootstrap, "large", COUNT)
    with EpochMembers(bootstrap, "crowd", "large", COUNT, COUNT) as group:
        group.until_stable(BEAT_SECONDS)
        crowd = described(bootstrap, "crowd")
        assert crowd.state is ConsumerGroupState.STABLE
        assert [len(each.assignment.topic_partitions) for each in crowd.members] == [1] * COUNT
        group.leave(COUNT // 2)
        group.until_stable(BEAT_SECONDS)
        halved = described(bootstrap, "crowd")
        assert halved.state is ConsumerGroupState.STABLE
        sizes = [len(each.assignment.topic_partitions) for each in halved.members]
        assert sizes == [2] * (COUNT // 2)
        # What each had it still has.
        before = {each.member_id: each.assignment.topic_partitions for each in crowd.members}
        for each in halved.members:
            assert set(before[each.member_id]) < set(each.assignment.topic_partitions)
