"""Users, ACLs and quotas changed by forms, and what two tabs do to each other."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.console.served_console import Visitor, console_of, serving

from ottla.client.admin.quotas import quotas
from ottla.client.admin.users import users
from ottla.client.client import Client
from ottla.quotas.entity import Entity, Kind
from ottla.testing import Broker, SharedBroker


@pytest.fixture(scope="module")
def with_acls() -> Iterator[Visitor]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Broker(settings) as broker, serving(console_of(broker.bootstrap)) as visitor:
        yield visitor


def test_a_user_is_added_given_another_password_and_removed(
    visitor: Visitor, ottla_session_broker: SharedBroker
) -> None:
    name = f"<b>{uuid4().hex}"
    form = {"user": name, "mechanism": "SCRAM-SHA-512", "password": "geheim", "again": "geheim"}
    added = visitor.post("/security/users", **form)
    assert f"User {name} can log in (SCRAM-SHA-512)." in added.words
    assert "geheim" not in added.text
    assert "<b>" not in added.text.partition("<main")[2]
    again = visitor.post("/security/users", **form)
    assert again.status == 409
    assert "has a password for SCRAM-SHA-512 already" in again.words
    assert "another password now" in visitor.post("/security/users", **form, replace="1").words
    doomed = {"user": name, "mechanism": "SCRAM-SHA-512"}
    assert "no longer logs in" in visitor.post("/security/users/delete", **doomed).words
    assert visitor.post("/security/users/delete", **doomed).status == 409
    with Client(ottla_session_broker.bootstrap) as client:
        assert users(client, [name]) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"user": ""}, "needs a name"),
        ({"user": "User:a"}, "without a type"),
        ({"password": "", "again": ""}, "needs a password"),
        ({"again": "other"}, "two different passwords"),
        ({"mechanism": "PLAIN"}, "must be one of"),
    ],
)
def test_a_wrong_user_is_refused(visitor: Visitor, change: dict[str, str], said: str) -> None:
    form = {"user": "a", "mechanism": "SCRAM-SHA-512", "password": "p", "again": "p"}
    found = visitor.post("/security/users", **{**form, **change})
    assert found.status == 400
    assert said in found.words


def test_acls_are_added_and_deleted(with_acls: Visitor) -> None:
    form = {
        "principal": "alice",
        "operations": "Read,Write",
        "kind": "topic",
        "name": "orders <i>",
        "permission": "deny",
        "host": "10.0.0.0/8",
    }
    added = with_acls.post("/security/acls", **form)
    assert "Added 2 ACLs" in added.words
    assert "User:alice deny Read topic orders <i> 10.0.0.0/8" in added.words
    assert "nothing to add" in with_acls.post("/security/acls", **form).words
    doomed = "User:alice Read topic 'orders <i>' --deny --host 10.0.0.0/8"
    deleted = with_acls.post("/security/acls/delete", acl=doomed)
    assert "Deleted the ACL" in deleted.words
    late = with_acls.post("/security/acls/delete", acl=doomed)
    assert late.status == 409
    assert "not there any more" in late.words
    assert "User:alice deny Write" in with_acls.get("/security").words
    assert with_acls.post("/security/acls/delete", acl="x").status == 400
    wrong = with_acls.post("/security/acls", **{**form, "operations": "Dance"})
    assert wrong.status == 400
    assert "is no operation on a topic" in wrong.words


def test_a_quota_is_set_changed_and_removed_unless_another_tab_was_first(
    visitor: Visitor, ottla_session_broker: SharedBroker
) -> None:
    name = uuid4().hex
    form = {"of": "user", "name": name, "quota": "producer_byte_rate"}
    added = visitor.post("/security/quotas", **form, seen="", value="1048576")
    assert "is 1048576 a second now" in added.words
    late = visitor.post("/security/quotas", **form, seen="", value="5")
    assert late.status == 409
    assert "is 1048576 by now" in late.words
    assert visitor.post("/security/quotas", **form, seen="1048576", value="7").status == 200
    with Client(ottla_session_broker.bootstrap) as client:
        (mine,) = (each for each in quotas(client) if each.entity == Entity(user=name))
    assert mine.values == {Kind.PRODUCE: 7.0}
    assert "is removed" in visitor.post("/security/quotas", **form, seen="7", value="").words
    assert name not in visitor.get("/security").text
    gone = visitor.post("/security/quotas", **form, seen="7", value="8")
    assert "is not set by now" in gone.words


@pytest.mark.parametrize(
    "change",
    [{"of": "moon"}, {"quota": "connection_creation_rate"}, {"value": "-1"}, {"value": "inf"},
     {"value": "x"}, {"value": ""}],
)  # fmt: skip
def test_a_wrong_quota_is_refused(visitor: Visitor, change: dict[str, str]) -> None:
    form = {
        "of": "user", "name": "u", "quota": "producer_byte_rate", "seen": "", "value": "1",
    }  # fmt: skip
    assert visitor.post("/security/quotas", **{**form, **change}).status == 400


def test_a_setting_of_a_broker_is_changed_unless_another_tab_was_first(visitor: Visitor) -> None:
    form = {"setting": "log.cleaner.backoff.ms", "do": "set"}
    page = "/brokers/1"
    assert visitor.get(page).status == 200
    done = visitor.post(page, **form, seen="15000", value="2000")
    assert "log.cleaner.backoff.ms is 2000 now." in done.words, done.words
    late = visitor.post(page, **form, seen="15000", value="3")
    assert late.status == 409
    unset = visitor.post(page, setting="log.cleaner.backoff.ms", do="unset", seen="2000")
    assert "is unset" in unset.words
    fixed = visitor.post(page, setting="log.dirs", seen="", value="/x", do="set")
    assert fixed.status == 400


def test_a_read_only_console_has_no_forms(ottla_session_broker: SharedBroker) -> None:
    with serving(console_of(ottla_session_broker.bootstrap, read_only=True)) as visitor:
        for page in ("/security", "/brokers/1"):
            assert '<button class="main"' not in visitor.get(page).text
        for path in ("users", "users/delete", "acls", "acls/delete", "quotas"):
            assert visitor.send(f"/security/{path}", user="x").status == 403
        assert visitor.send("/brokers/1", setting="log.cleaner.backoff.ms", value="2").status == 403
