"""ZooKeeper in trouble: without it nobody is elected, and all else goes on."""

import time
from pathlib import Path

import pytest
from faults.history import Elected
from tests.system.cluster_load import TOPIC, Loaded, loaded_cluster, wait_for


def epochs(load: Loaded) -> dict[int, int]:
    """The last leader epoch seen of each partition."""
    return {event.partition: event.leader_epoch for event in load.events(Elected)}


def test_produce_and_consume_go_on_without_the_ensemble(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path) as (cluster, load):
        before = epochs(load)
        cluster.kill_zookeeper()
        # Several sessions long; the long runs have it gone for a minute.
        until = time.monotonic() + 12
        while time.monotonic() < until:
            load.wait_progress(20)
        cluster.start_zookeeper()
        cluster.wait_registered(cluster.brokers)
        cluster.wait_in_sync(TOPIC)
        load.wait_progress()
        assert load.told_errors() == []
        assert epochs(load).keys() == before.keys()


def test_one_member_of_three_may_die(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path, ensemble=3) as (cluster, load):
        for member in (1, 2):
            cluster.kill_zookeeper(member)
            load.wait_progress()
            # What needs the ensemble works, too.
            leader = cluster.leader(TOPIC, 0)
            cluster.kill(leader)
            cluster.wait_leader_other_than(leader, TOPIC, 0)
            load.wait_progress()
            cluster.start(leader)
            cluster.start_zookeeper(member)
            cluster.wait_in_sync(TOPIC)


@pytest.mark.parametrize("who", ["controller", "another broker"])
def test_a_broker_whose_session_expires_registers_again(tmp_path: Path, who: str) -> None:
    with loaded_cluster(tmp_path) as (cluster, load):
        controller = cluster.controller()
        others = [broker for broker in cluster.brokers if broker != controller]
        broker = controller if who == "controller" else others[0]
        session = cluster.state.session_of(broker)
        cluster.expire_session(broker)
        wait_for("a new session", lambda: cluster.state.session_of(broker) not in (None, session))
        cluster.wait_registered(cluster.brokers)
        cluster.wait_in_sync(TOPIC)
        load.wait_progress()


def test_a_revived_leader_acknowledges_nothing_that_the_new_one_lacks(tmp_path: Path) -> None:
    """The checker at the end of the load would find what only the old leader has."""
    with loaded_cluster(tmp_path) as (cluster, load):
        old = cluster.leader(TOPIC, 0)
        cluster.pause(old)
        cluster.wait_leader_other_than(old, TOPIC, 0)
        load.wait_progress()
        cluster.resume(old)
        cluster.wait_registered(cluster.brokers)
        cluster.wait_in_sync(TOPIC)
        load.wait_progress()
