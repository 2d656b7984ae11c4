"""What a broker's metadata lacks, compared with the actual state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker
from ottla.testing.broker_metadata import KnownPartition, not_yet_known, partitions_known_to
from ottla.testing.ports import HOST, free_ports

KNOWN = KnownPartition(0, 0, frozenset({0}))


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with the topic flights, of two partitions."""
    data: Path = tmp_path_factory.mktemp("broker") / "data"
    with Broker({"broker.id": 0}, data=data) as broker:
        broker.create_topic("flights", partitions=2)
        yield broker.bootstrap


def test_a_broker_that_knows_everything(bootstrap: str) -> None:
    actual = {("flights", 0): KNOWN, ("flights", 1): KNOWN}
    assert partitions_known_to(bootstrap, ["flights"]) == actual
    assert not_yet_known(bootstrap, ["flights"], actual) == []


@pytest.mark.parametrize(
    "actual",
    [
        KNOWN._replace(leader=1),
        KNOWN._replace(leader_epoch=1),
        KNOWN._replace(isr=frozenset({0, 1})),
    ],
)
def test_an_older_leader_epoch_or_isr_is_named(bootstrap: str, actual: KnownPartition) -> None:
    (line,) = not_yet_known(bootstrap, ["flights"], {("flights", 0): actual})
    assert line.startswith(f"flights-0: {bootstrap} knows KnownPartition(leader=0")


def test_an_unknown_partition_is_named(bootstrap: str) -> None:
    (line,) = not_yet_known(bootstrap, ["flights", "trains"], {("trains", 1): KNOWN})
    assert line.startswith(f"trains-1: {bootstrap} knows None, it is KnownPartition(leader=0")


def test_a_broker_that_does_not_respond_knows_nothing() -> None:
    address = f"{HOST}:{free_ports(1)[0]}"
    (line,) = not_yet_known(address, ["flights"], {("flights", 0): KNOWN})
    assert line.startswith(f"no response from {address}: cannot reach a broker")
