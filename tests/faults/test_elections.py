from faults.anomaly import Policy
from faults.elections import STALE_LEADER_MS, Elections
from faults.history import Elected, Epochs, Event


def elections(*epochs: tuple[int, int]) -> Elections:
    """Broker 0 led with the ISR 0 and 1. It died at 100 ms; 2 was elected uncleanly at 200 ms."""
    return Elections(
        [
            Elected(1, 0, 0, 0, (0, 1)),
            Elected(100, 0, -1, 1, (0, 1)),
            Elected(200, 0, 2, 2, (2,)),
            Epochs(900, 0, epochs),
        ]
    )


def test_the_excuse_names_broker_epoch_and_log_end() -> None:
    found = elections((0, 0), (2, 7)).excuse(Policy.unclean, 0, 7, 50)
    assert found == "broker 2 was uncleanly elected in epoch 2 at 200 ms, and its log ended at 7"


def test_an_epoch_without_records_counts_as_the_next() -> None:
    assert elections((0, 0), (5, 7)).excuse(Policy.unclean, 0, 8, 50) is not None
    assert elections((0, 0), (1, 7)).excuse(Policy.unclean, 0, 8, 50) is None


def test_an_unclean_leader_may_restore_older_records() -> None:
    """Broker 2 has a record of epoch 0 at offset 7; the leader of epoch 1 had another one there."""
    events: list[Event] = [
        Elected(1, 0, 2, 0, (0, 1, 2)),
        Elected(20, 0, 0, 1, (0,)),
        Elected(200, 0, 2, 2, (2,)),
        Epochs(900, 0, ((0, 0), (2, 9))),
    ]
    assert Elections(events).excuse(Policy.unclean, 0, 7, 50) is not None
    assert Elections(events).excuse(Policy.unclean, 0, 7, 10) is None
    assert Elections(events).excuse(Policy.acks_1, 0, 7, 10) is None


def test_strict_excuses_nothing_and_partitions_are_independent() -> None:
    assert elections((0, 0), (2, 0)).excuse(Policy.strict, 0, 7, 50) is None
    assert elections((0, 0), (2, 0)).excuse(Policy.unclean, 1, 7, 50) is None


def test_a_stale_leader_may_acknowledge_acks_1_for_a_while() -> None:
    found = elections((0, 0), (2, 0))
    assert found.excuse(Policy.acks_1, 0, 7, 200 + STALE_LEADER_MS, is_taken=True) is not None
    assert found.excuse(Policy.acks_1, 0, 7, 201 + STALE_LEADER_MS, is_taken=True) is None
    assert found.excuse(Policy.acks_1, 0, 7, 201) is None
    assert found.excuse(Policy.unclean, 0, 7, 201, is_taken=True) is None


def test_the_epoch_of_a_record_tells_more_than_the_time_of_its_acknowledgement() -> None:
    """A leader that was replaced and does not know it acknowledges with its followers' help."""
    found = elections((0, 0), (2, 0))
    assert found.excuse(Policy.unclean, 0, 7, 201, leader_epoch=0) is not None
    assert found.excuse(Policy.unclean, 0, 7, 201) is None
    assert found.excuse(Policy.unclean, 0, 7, 201, leader_epoch=2) is None


def test_a_time_without_a_leader_is_not_an_election() -> None:
    alone = Elections(
        [Elected(1, 0, 0, 0, (0,)), Elected(9, 0, -1, 1, (0,)), Epochs(9, 0, ((1, 0),))]
    )
    assert alone.excuse(Policy.acks_1, 0, 7, 5) is None
