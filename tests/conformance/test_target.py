from pathlib import Path

import pytest
from conformance.target import USER, Target, replication_factor, settings
from conformance.warm_up import warm_up

from ottla.testing import KitError


def test_what_brokers_of_somebody_else_are_asked_for() -> None:
    with Target("127.0.0.1:1,127.0.0.1:2", [Path("a"), Path("b")]) as target:
        assert target.addresses == ("127.0.0.1:1", "127.0.0.1:2")
        assert target.folders == (Path("a"), Path("b"))
        target.stop()
        assert (target.died(), target.logs(), target.replicas) == (None, {}, None)


@pytest.mark.parametrize(("brokers", "replicas"), [(1, 1), (2, 2), (3, 3), (5, 3)])
def test_topics_are_replicated_as_far_as_there_are_brokers(brokers: int, replicas: int) -> None:
    assert replication_factor(brokers) == replicas
    given = settings(brokers)
    assert given.get("default.replication.factor", "1") == str(replicas)
    assert int(given.get("min.insync.replicas", "1")) == max(1, replicas - 1)


def test_one_broker_of_ours_from_start_to_stop() -> None:
    with Target(None) as target:
        assert target.died() is None
        warm_up(target.bootstrap)
        target.stop()
        assert target.died() is None, "it was asked to"
        assert list(target.folders[0].glob("warm-up-*/*.log"))
        assert "broker 1 is the controller" in target.logs()["broker.log"]
        assert target.replicas is None
    assert not target.folders[0].exists()


def test_one_secured_broker_of_ours() -> None:
    with Target(None, is_secured=True) as target:
        assert target.client["sasl.username"] == USER
        assert target.admin["sasl.username"] == "admin"
        warm_up(target.bootstrap, target.client)
        target.stop()
        assert target.died() is None


def test_a_broker_that_dies_is_noticed() -> None:
    with Target(None) as target:
        (broker,) = target._brokers.values()
        broker.kill()
        assert target.died() is not None
        assert target.own_bugs() == []
        assert broker.errors is not None
        with broker.errors.open("a") as log:
            log.write("Traceback (most recent call last):\n  ours\nKeyError: 'ours'\n")
        assert target.own_bugs() == [
            "broker.log: Traceback (most recent call last):\n  ours\nKeyError: 'ours'\n"
        ]
        with pytest.raises(KitError, match="ended with -9"):
            target.stop()


def test_three_brokers_of_ours_from_start_to_stop() -> None:
    with Target(None, brokers=3) as target:
        assert len(target.addresses) == len(target.folders) == 3
        warm_up(target.bootstrap)
        target.stop()
        assert target.died() is None
        assert target.replicas is not None
        copies = [held for (topic, _), held in target.replicas.held.items() if "warm" in topic]
        assert [set(held) for held in copies] == [set(target.folders)] * 4
        assert target.replicas.differences() == []
        assert set(target.logs()) == {"broker-1.log", "broker-2.log", "broker-3.log"}
    assert not any(folder.exists() for folder in target.folders)
