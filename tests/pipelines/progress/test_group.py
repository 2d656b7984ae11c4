"""A consumer group as a place to keep things."""

import socket
from collections.abc import Callable

import pytest

from ottla.pipelines.progress import group as group_module
from ottla.pipelines.progress.group import Commit, Group, GroupError


def test_commits_come_back_with_their_metadata(
    new_topic: Callable[..., str], new_group: Callable[[], Group]
) -> None:
    topic, group = new_topic(), new_group()
    assert group.read_all() == {}

    group.commit({(topic, 0): Commit(7, "seven"), (topic, 1): Commit(0)})

    assert group.read_all() == {(topic, 0): Commit(7, "seven"), (topic, 1): Commit(0, "")}
    assert group.read([(topic, 0)]) == {(topic, 0): Commit(7, "seven")}


def test_a_companion_is_another_group_and_can_be_deleted(
    new_topic: Callable[..., str], new_group: Callable[[], Group]
) -> None:
    topic, group = new_topic(), new_group()
    group.commit({(topic, 0): Commit(7)})
    companion = group.companion("stop")
    companion.commit({(topic, 0): Commit(9, "x")})

    assert companion.name == f"{group.name}.stop"
    assert group.read_all() == {(topic, 0): Commit(7)}
    companion.delete()
    companion.delete()
    assert companion.read_all() == {}
    assert group.read_all() == {(topic, 0): Commit(7)}


def test_what_the_broker_refuses_is_one_line(new_group: Callable[[], Group]) -> None:
    with pytest.raises(GroupError) as raised:
        new_group().commit({("no-such-topic", 0): Commit(1)})
    assert "\n" not in str(raised.value)
    assert "topic" in str(raised.value)


def test_a_broker_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "TIMEOUT_S", 0.2)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(GroupError):
            Group({"bootstrap.servers": address}, "group").read_all()


def test_a_setting_that_librdkafka_does_not_know_is_one_line() -> None:
    with pytest.raises(GroupError, match=r"securty\.protocol"):
        Group({"bootstrap.servers": "localhost:1", "securty.protocol": "ssl"}, "group").read_all()
