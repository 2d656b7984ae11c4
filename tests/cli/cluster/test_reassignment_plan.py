"""The options of a reassignment become targets, or one line that says what is wrong."""

import pytest

from ottla.cli.cluster.reassignment_plan import (
    assigned,
    check_brokers,
    check_places,
    read_brokers,
    spread_out,
)
from ottla.cli.failures import Failed, UsageFailed

REPLICAS = {"t": [[1], [2], [1]], "u": [[1, 2]]}
LIVE: dict[int, str | None] = {1: None, 2: None, 3: None}


def test_brokers_are_read() -> None:
    assert read_brokers("3, 1,3") == [1, 3]
    assert read_brokers(None) is None
    with pytest.raises(UsageFailed, match="must be broker ids, not '1,x'"):
        read_brokers("1,x")


def test_a_topic_gets_another_number_of_replicas() -> None:
    found = spread_out(["t"], None, REPLICAS, LIVE, None, 2)
    assert found == {"t": {0: (1, 3), 1: (2, 3), 2: (1, 2)}}
    assert spread_out(["t"], [1], REPLICAS, LIVE, None, 2) == {"t": {1: (2, 1)}}


def test_topics_are_spread_over_brokers() -> None:
    assert spread_out(["t", "u"], None, REPLICAS, LIVE, [2, 3], None) == {
        "t": {0: (3,), 2: (2,)},
        "u": {0: (2, 3)},
    }


def test_too_few_brokers_names_the_topic() -> None:
    with pytest.raises(Failed, match="topic 't': 4 replicas need 4 brokers"):
        spread_out(["t"], None, REPLICAS, LIVE, None, 4)


def test_an_assignment_is_for_all_partitions_or_the_named_ones() -> None:
    assert assigned("3,1,2", "t", None, REPLICAS) == {"t": {0: (3,), 1: (1,), 2: (2,)}}
    assert assigned("3:1", "t", [2], REPLICAS) == {"t": {2: (3, 1)}}
    with pytest.raises(UsageFailed, match="brokers of 1 partition, but 3 are to be moved"):
        assigned("3", "t", None, REPLICAS)


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(Failed, match="no topic 'w'"):
        check_places(REPLICAS, {"w": {0: ()}})
    with pytest.raises(Failed, match="partitions 0 to 2, not 3"):
        check_places(REPLICAS, {"t": {3: ()}})
    with pytest.raises(Failed, match="no live broker '9'"):
        check_brokers({"t": {0: (1, 9)}}, [], LIVE)
    with pytest.raises(Failed, match="no live broker '7'"):
        check_brokers({}, [7], LIVE)
