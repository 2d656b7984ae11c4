"""A topic or a broker that has settings, or does not exist."""

from __future__ import annotations

import pytest
from tests.client.fake_cluster import FakeCluster

from ottla.cli.config.entity import check_exists
from ottla.cli.failures import Failed


@pytest.mark.parametrize(
    ("brokers", "name", "message"),
    [
        ((1,), "2", "there is no broker '2'; there is 1."),
        ((3, 1), "2", "there is no broker '2'; there are 1, 3."),
        ((1,), "one", "there is no broker 'one'; there is 1."),
        ((1,), "²", "there is no broker '²'; there is 1."),
    ],
)
def test_brokers_that_do_not_exist(brokers: tuple[int, ...], name: str, message: str) -> None:
    cluster = FakeCluster()
    cluster.brokers = list(brokers)
    client = cluster.client()
    with pytest.raises(Failed) as failure:
        check_exists(client, "broker", name)
    assert failure.value.message == message
    assert failure.value.hint == "To list the brokers: ottla cluster describe"
    check_exists(client, "broker", str(brokers[0]))


def test_topics_that_do_not_exist() -> None:
    client = FakeCluster().client()
    check_exists(client, "topic", "t")
    with pytest.raises(Failed, match="there is no topic 'q'"):
        check_exists(client, "topic", "q")
