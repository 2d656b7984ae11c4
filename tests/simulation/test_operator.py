"""What operators do to the topic while brokers come and go."""

from __future__ import annotations

from simulation.faults import Fault
from simulation.world import World


def world(seed: int, *faults: tuple[int, str, int]) -> World:
    """Faults as (when, what, to whom); each lasts a second."""
    return World(seed, tuple(Fault(at_ms, kind, one, 1, 1000, 0) for at_ms, kind, one in faults))


def test_a_deleted_topic_is_made_again_and_begins_empty() -> None:
    tried = world(3, (5000, "delete", 1))
    assert tried.run().violation is None
    (old,) = {account.topic_id for account in tried.ledger.deleted}
    (new,) = {account.topic_id for account in tried.ledger.accounts.values()}
    assert old != new
    assert all(account.committed for account in tried.ledger.accounts.values())


def test_a_broker_that_is_down_while_its_topic_is_deleted_drops_it_later() -> None:
    tried = world(3, (4800, "crash", 2), (5000, "delete", 1))
    assert tried.run().violation is None
    (new,) = {account.topic_id for account in tried.ledger.accounts.values()}
    for broker in tried.brokers.values():
        assert {log.topic_id for log in broker.disk.logs.values()} <= {new}


def test_an_added_partition_is_written_to_like_the_others() -> None:
    tried = world(3, (5000, "add partition", 1))
    before = tried.partitions
    assert tried.run().violation is None
    assert tried.partitions == before + 1
    assert tried.ledger.accounts[f"t-{before}"].committed
