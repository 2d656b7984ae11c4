"""Replicas are spread over brokers, or one line says what is wrong."""

import pytest

from ottla.client.admin.reassignment_plan import check_partitions, spread_out
from ottla.client.errors import ClientError

REPLICAS = {"t": [[1], [2], [1]], "u": [[1, 2]]}
LIVE: dict[int, str | None] = {1: None, 2: None, 3: None}


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
    with pytest.raises(ClientError, match="topic 't': 4 replicas need 4 brokers"):
        spread_out(["t"], None, REPLICAS, LIVE, None, 4)


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(ClientError, match="no topic 'w'"):
        check_partitions(REPLICAS, {"w": {0: ()}})
    with pytest.raises(ClientError, match="partitions 0 to 2, not 3"):
        check_partitions(REPLICAS, {"t": {3: ()}})
