"""ZooKeeper in trouble: without it nobody is elected, and all else goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.system.cluster_load import TOPIC, Loaded, create, loaded_cluster, produce, wait_for

from ottla.testing import BrokerProcess, Cluster

LATER_S = 4
"""A broker that had not come back would have lost its short session by then."""

ASKED_SLOWLY_S = 0.15
"""For each of three questions at least, so the answer may take more than a second."""


@dataclass(frozen=True)
class Terms:
    """Who was elected for what, and how often: read past the brokers."""

    controller: int | None
    controller_epoch: int | None
    leaders: dict[tuple[str, int], tuple[int, int]]
    """(leader, leader epoch) of each partition, those of the groups' offsets among them."""

    @classmethod
    def now(cls, cluster: Cluster) -> Terms:
        state = cluster.state
        leaders = {}
        for topic in state.topics():
            for partition in state.replicas(topic) or ():
                found = state.partition(topic, partition)
                assert found is not None
                leaders[topic, partition] = found["leader"], found["leader_epoch"]
        return cls(state.controller(), state.controller_epoch(), leaders)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Loaded]]:
    """With short sessions. A test leaves all brokers in sync, and creates topics of its own."""
    with loaded_cluster(tmp_path_factory.mktemp("loaded")) as found:
        yield found


@pytest.mark.full
def test_a_minute_without_the_ensemble_with_the_default_session(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path, {"zookeeper.session.timeout.ms": 18_000}) as (cluster, load):
        goes_on_without_the_ensemble(cluster, load, 60)


def test_produce_and_consume_go_on_without_the_ensemble(loaded: tuple[Cluster, Loaded]) -> None:
    """For longer than two sessions."""
    goes_on_without_the_ensemble(*loaded, 8)


def goes_on_without_the_ensemble(cluster: Cluster, load: Loaded, gone_s: int) -> None:
    """Nobody is elected, then or when it is back: it has the sessions, and gives them a new
    timeout."""
    before, errors = Terms.now(cluster), len(load.told_errors())
    cluster.kill_zookeeper()
    until = time.monotonic() + gone_s
    while time.monotonic() < until:
        load.wait_progress(100)
    cluster.start_zookeeper()
    load.wait_progress()
    cluster.wait_registered(cluster.brokers)
    cluster.wait_in_sync()
    # What needs the ensemble works, too.
    create(cluster, "later")
    assert produce(cluster, "later", 10) == ["NO_ERROR"] * 10
    until = time.monotonic() + LATER_S
    while time.monotonic() < until:
        load.wait_progress(100)
    after = Terms.now(cluster)
    later = {place: told for place, told in after.leaders.items() if place not in before.leaders}
    assert later.keys() == {("later", 0)}
    assert after == replace(before, leaders=before.leaders | later)
    assert load.told_errors()[errors:] == []


def test_sessions_that_all_end_together_cost_no_leadership(loaded: tuple[Cluster, Loaded]) -> None:
    """The ensemble runs, and no broker reaches it: only the controller is elected again."""
    cluster, load = loaded
    before, errors = Terms.now(cluster), len(load.told_errors())
    for broker in cluster.brokers:
        cluster.cut_zookeeper(broker)
    wait_for("all sessions to end", lambda: not cluster.state.live_brokers())
    load.wait_progress()
    cluster.heal()
    cluster.wait_registered(cluster.brokers)
    cluster.controller()
    create(cluster, "new")
    load.wait_progress()
    after = Terms.now(cluster)
    assert after.leaders == {**before.leaders, ("new", 0): after.leaders["new", 0]}
    assert before.controller_epoch is not None
    assert after.controller_epoch == before.controller_epoch + 1
    assert load.told_errors()[errors:] == []
    cluster.wait_in_sync()


@pytest.mark.parametrize("members", [[2], pytest.param([1, 3], marks=pytest.mark.full)])
def test_one_member_of_three_may_die(tmp_path: Path, members: list[int]) -> None:
    with loaded_cluster(tmp_path, ensemble=3) as (cluster, load):
        for member in members:
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


@pytest.mark.full
def test_the_ensemble_without_a_majority_elects_nobody(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path, ensemble=3) as (cluster, load):
        before = Terms.now(cluster)
        cluster.kill_zookeeper(1)
        cluster.kill_zookeeper(3)
        until = time.monotonic() + 7
        while time.monotonic() < until:
            load.wait_progress(100)
        cluster.start_zookeeper(3)
        cluster.start_zookeeper(1)
        until = time.monotonic() + LATER_S
        while time.monotonic() < until:
            load.wait_progress(100)
        cluster.wait_registered(cluster.brokers)
        cluster.wait_in_sync()
        assert Terms.now(cluster) == before
        assert load.told_errors() == []


@pytest.mark.parametrize(
    "who", ["controller", pytest.param("another broker", marks=pytest.mark.full)]
)
def test_a_broker_whose_session_expires_registers_again(
    loaded: tuple[Cluster, Loaded], who: str
) -> None:
    cluster, load = loaded
    controller = cluster.controller()
    others = [broker for broker in cluster.brokers if broker != controller]
    broker = controller if who == "controller" else others[0]
    session = cluster.state.session_of(broker)
    cluster.expire_session(broker)
    wait_for("a new session", lambda: cluster.state.session_of(broker) not in (None, session))
    cluster.wait_registered(cluster.brokers)
    cluster.wait_in_sync()
    load.wait_progress()


def test_a_revived_leader_acknowledges_nothing_that_the_new_one_lacks(
    loaded: tuple[Cluster, Loaded],
) -> None:
    """The checker at the end of the load would find what only the old leader has."""
    cluster, load = loaded
    old = cluster.leader(TOPIC, 0)
    cluster.pause(old)
    cluster.wait_leader_other_than(old, TOPIC, 0)
    load.wait_progress()
    cluster.resume(old)
    cluster.wait_registered(cluster.brokers)
    cluster.wait_in_sync()
    load.wait_progress()


def test_brokers_end_cleanly_without_zookeeper() -> None:
    """All at once, as Ctrl-C ends them: their controller can move no leadership any more."""
    with Cluster(brokers=2) as cluster:
        create(cluster, TOPIC, 4, replication_factor=2)
        cluster.kill_zookeeper()
        brokers = [cluster._broker(number) for number in (1, 2)]
        with ThreadPoolExecutor(2) as threads:
            assert list(threads.map(BrokerProcess.stop, brokers)) == [0, 0]
        for broker in brokers:
            assert "Traceback" not in broker.said()


def test_a_controller_that_refuses_connections_stays_the_controller(
    loaded: tuple[Cluster, Loaded],
) -> None:
    """Something before it refuses, and its session lives: in Kafka, too, only that decides.

    Who asks it by the tree gives it three times as long as his own questions took there. Where they
    are quick these are 25 ms, in which a busy machine may not get round to it.
    """
    cluster, load = loaded
    before = Terms.now(cluster)
    controller = cluster.controller()
    others = {number: each for number, each in cluster.brokers.items() if number != controller}
    for number in others:
        cluster.network.slow_zookeeper(number, ASKED_SLOWLY_S)
    words = f"broker {controller}, the controller, refuses connections"
    said = {number: each.said().count(words) for number, each in others.items()}
    cluster.network.broker_is_down(controller)
    cluster.cut_off(controller, reset=True)

    def all_asked() -> bool:
        assert cluster.state.controller_epoch() == before.controller_epoch, "it was replaced"
        return all(each.said().count(words) > said[number] for number, each in others.items())

    wait_for("the others to ask it by the tree", all_asked)
    for number in others:
        cluster.network.slow_zookeeper(number, 0)
    cluster.network.broker_comes_up(controller)
    cluster.heal()
    cluster.wait_in_sync()
    load.wait_progress()
    after = Terms.now(cluster)
    assert (after.controller, after.controller_epoch) == (controller, before.controller_epoch)
    assert cluster.state.live_brokers() == sorted(cluster.brokers)
