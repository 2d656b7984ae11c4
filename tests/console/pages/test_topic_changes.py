"""Creating, changing and deleting topics by forms."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.console.served_console import Visitor, console_of, serving

from ottla.console.errors import BadFormError
from ottla.console.pages.topic_changes import read_settings
from ottla.testing import SharedBroker


@pytest.fixture
def name(visitor: Visitor) -> str:
    name = f"t-{uuid4().hex}"
    made = visitor.post(
        "/topics/new", name=name, partitions=2, replicas="", settings="retention.ms=5\n"
    )
    assert made.status == 200, made.words
    assert f"Created topic {name}." in made.words
    return name


def test_settings_are_lines() -> None:
    assert read_settings(" a=1 \n\n b.c = x=y\n") == {"a": "1", "b.c": "x=y"}
    with pytest.raises(BadFormError, match="NAME=VALUE"):
        read_settings("a")


def test_a_new_topic_has_what_the_form_said(visitor: Visitor, name: str) -> None:
    partitions = visitor.get(f"/topics/{name}/partitions").words
    assert "2 partitions" in partitions
    assert "in sync" in partitions
    settings = visitor.get(f"/topics/{name}/settings").words
    assert settings.index("retention.ms") < settings.index("cleanup.policy")
    assert "retention.ms 5 Set Unset this topic log.retention.hours=168" in settings


def test_what_cannot_be_created_says_why(visitor: Visitor, name: str) -> None:
    again = visitor.post("/topics/new", name=name)
    assert again.status == 409
    assert "already exists" in again.words
    wrong = visitor.post("/topics/new", name=f"{name}x", settings="retention.ms=7d")
    assert "retention.ms is a number of milliseconds" in wrong.words
    assert visitor.post("/topics/new", name="").status == 400
    assert visitor.post("/topics/new", name="a/b").status == 409


def test_a_setting_is_changed_unless_another_tab_was_first(visitor: Visitor, name: str) -> None:
    page = f"/topics/{name}/settings"
    done = visitor.post(page, setting="retention.ms", seen="5", value="6", do="set")
    assert "retention.ms is 6 now." in done.words
    late = visitor.post(page, setting="retention.ms", seen="5", value="7", do="set")
    assert late.status == 409
    assert "is '6' by now" in late.words
    unset = visitor.post(page, setting="retention.ms", seen="6", value="", do="unset")
    assert "retention.ms is unset." in unset.words
    assert visitor.post(page, setting="no.such", seen="", value="1", do="set").status == 400


def test_partitions_are_added(visitor: Visitor, name: str) -> None:
    more = visitor.post(f"/topics/{name}/add-partitions", partitions=3)
    assert "has 3 partitions now" in more.words
    fewer = visitor.post(f"/topics/{name}/add-partitions", partitions=3)
    assert fewer.status == 400
    assert "partitions cannot be removed" in fewer.words


def test_a_topic_is_deleted_once_its_name_is_typed(visitor: Visitor, name: str) -> None:
    page = f"/topics/{name}/delete"
    assert visitor.post(page, name=f"{name}x").status == 400
    assert visitor.get(f"/topics/{name}/partitions").status == 200
    assert f"Deleted topic {name}." in visitor.post(page, name=name).words
    gone = visitor.get(f"/topics/{name}/partitions")
    assert gone.status == 404
    assert f"there is no topic '{name}'".lower() in gone.words.lower()


def test_a_read_only_console_changes_nothing(ottla_session_broker: SharedBroker) -> None:
    with serving(console_of(ottla_session_broker.bootstrap, read_only=True)) as visitor:
        assert "read-only" in visitor.get("/").words
        assert "Create a topic" not in visitor.get("/topics").words
        refused = visitor.send("/topics/new", name="x")
        assert refused.status == 403
        assert "This console changes nothing." in refused.words


def test_a_form_of_another_site_or_session_is_refused(visitor: Visitor, name: str) -> None:
    page = f"/topics/{name}/delete"
    origin = {"Origin": "http://evil.example"}
    assert visitor.send(page, origin, name=name).status == 403
    assert visitor.send(page, name=name, token="guessed").status == 403
    assert visitor.ask("GET", page).status == 405
    assert visitor.get(f"/topics/{name}/partitions").status == 200
