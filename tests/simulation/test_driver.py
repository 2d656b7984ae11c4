"""What the controller does about brokers that come and go."""

from __future__ import annotations

import pytest
from simulation.faults import Fault
from simulation.world import World

CRASH = (Fault(5000, "crash", 2, 1, 4000, 0),)


@pytest.mark.parametrize("probes", [True, False])
def test_a_closed_port_ends_a_registration_before_its_session_does(probes: bool) -> None:
    world = World(1, CRASH)
    world.probes = probes
    outcome = world.run()
    assert outcome.violation is None
    gone = [line for line in outcome.transcript if "/brokers/ids/2 deleted" in line]
    assert [int(line.split(" ms")[0]) < 5100 for line in gone] == ([True] if probes else [])


@pytest.mark.parametrize("rebalances", [True, False])
def test_a_preferred_leader_leads_again_by_itself(rebalances: bool) -> None:
    led = []
    for seed in range(4):
        world = World(seed, CRASH)
        world.rebalances = rebalances
        assert world.run().violation is None
        states = world.brokers[1].image.topics["t"].partitions
        led += [state.leader == state.replicas[0] for state in states]
    assert all(led) is rebalances
