"""`ottla config`: which settings are shown, and what does not exist."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.config import Kind, check_exists, is_wanted, shown_value
from ottla.cli.failures import Failed

ENTRY = {"name": "retention.ms", "value": "5", "source": "topic", "sensitive": False}
DEFAULT = ENTRY | {"name": "segment.ms", "source": "default"}


@pytest.mark.parametrize(
    ("settings", "all_settings", "shown"),
    [
        (None, False, ["retention.ms"]),
        (None, True, ["retention.ms", "segment.ms"]),
        (["segment.ms"], False, ["segment.ms"]),
        (["segment.ms"], True, ["segment.ms"]),
    ],
)
def test_named_settings_or_those_that_differ(
    settings: list[str] | None, all_settings: bool, shown: list[str]
) -> None:
    entries = (ENTRY, DEFAULT)
    assert [e["name"] for e in entries if is_wanted(e, settings, all_settings)] == shown


def test_a_password_is_hidden() -> None:
    assert shown_value(ENTRY) == "5"
    assert shown_value(ENTRY | {"sensitive": True}) == "(hidden)"


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
        check_exists(connection, Kind.BROKER, name)
    assert failure.value.message == message
    assert failure.value.hint == f"For example: ottla config describe broker {min(brokers)}"
    check_exists(connection, Kind.BROKER, str(brokers[0]))


def test_topics_that_do_not_exist() -> None:
    asked: list[list[str]] = []
    connection: Any = SimpleNamespace(existing_topics=asked.append)
    check_exists(connection, Kind.TOPIC, "t")
    assert asked == [["t"]]
