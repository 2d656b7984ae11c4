"""A topic or a broker that has settings, or does not exist."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

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
    connection: Any = SimpleNamespace(
        metadata=lambda: SimpleNamespace(brokers=dict.fromkeys(brokers))
    )
    with pytest.raises(Failed) as failure:
        check_exists(connection, "broker", name)
    assert failure.value.message == message
    assert failure.value.hint == f"For example: ottla config describe broker {min(brokers)}"
    check_exists(connection, "broker", str(brokers[0]))


def test_topics_that_do_not_exist() -> None:
    asked: list[list[str]] = []
    connection: Any = SimpleNamespace(existing_topics=asked.append)
    check_exists(connection, "topic", "t")
    assert asked == [["t"]]
