"""A leader that a test chooses, on a real cluster."""

from __future__ import annotations

import pytest

from ottla.testing import Cluster, KitError


@pytest.mark.full
@pytest.mark.ottla(brokers=3)
def test_leadership_moves_and_faults_reach_every_broker(ottla_brokers: Cluster) -> None:
    topic = ottla_brokers.create_topic("moved")
    leader = ottla_brokers.leader("moved")
    topic.produce("before")
    other = next(each for each in ottla_brokers.brokers if each != leader)
    ottla_brokers.elect(other, "moved")
    assert ottla_brokers.leader("moved") == other
    topic.produce("after")
    topic.assert_records(["before", "after"])
    ottla_brokers.roll("moved")
    with pytest.raises(KitError, match="broker 9 has no replica"):
        ottla_brokers.elect(9, "moved")
    fault = ottla_brokers.fail("Metadata", "LEADER_NOT_AVAILABLE", client_id="ottla-testing")
    with pytest.raises(KitError, match="cannot read moved"):
        ottla_brokers.topic("moved").consume(timeout_s=5)
    assert fault.happened
    ottla_brokers.kill(other)
    fault.remove()
