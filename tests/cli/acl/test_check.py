"""`ottla acl`: what is added, shown and deleted, and which ACL decides."""

from __future__ import annotations

import json
import shlex
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.credentials import Credentials
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.client.admin.acls import CREATE_ACLS, DESCRIBE_ACLS
from ottla.client.admin.configs import DESCRIBE_CONFIGS
from ottla.protocol.errors import ErrorCode
from ottla.security.acl_words import parse_acls


@pytest.fixture
def known() -> Credentials:
    return Credentials()


class Typed:
    """Types commands at a fake cluster."""

    def __init__(self, known: Credentials, capsys: pytest.CaptureFixture[str]) -> None:
        self._cluster: Any = SimpleNamespace(client=FakeCluster(known.answers()).client())
        self._capsys = capsys

    def __call__(self, words: str, code: int = 0) -> str:
        assert carry_out(["acl", *shlex.split(words)], self._cluster) == code
        captured = self._capsys.readouterr()
        return captured.out + captured.err

    def json(self, words: str, code: int = 0) -> Any:
        return json.loads(self(f"{words} --json", code))


@pytest.fixture
def typed(known: Credentials, capsys: pytest.CaptureFixture[str]) -> Typed:
    return Typed(known, capsys)


def test_add_list_describe_and_delete(known: Credentials, typed: Typed) -> None:
    assert "ottla acl add" in typed("list")
    typed("add alice Read,Write topic orders")
    typed("add bob Read topic ord --prefixed --host 10.0.0.0/8")
    typed("add alice All group '*' --deny")
    assert known.acls == [
        *parse_acls("alice Read,Write topic orders"),
        *parse_acls("bob Read topic ord --prefixed --host 10.0.0.0/8"),
        *parse_acls("alice All group '*' --deny"),
    ]
    assert [each["name"] for each in typed.json("list --kind topic")] == ["orders", "orders", "ord"]
    assert [each["kind"] for each in typed.json("list --principal alice")] == [
        "group", "topic", "topic",
    ]  # fmt: skip
    described = typed.json("describe topic orders")
    assert [each["principal"] for each in described["acls"]] == [
        "User:alice", "User:alice", "User:bob",
    ]  # fmt: skip
    assert described["super_users"] == ["User:root"]
    assert "no such ACL: User:alice Delete topic orders" in typed(
        "delete alice Delete topic orders --yes", 1
    )
    typed("delete alice Read,Write topic orders --yes")
    typed("delete alice --yes")
    assert known.acls == parse_acls("bob Read topic ord --prefixed --host 10.0.0.0/8")
    assert "no ACL names User:alice" in typed("delete alice --yes", 1)
    assert "only super users may use it" in typed("describe topic other")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("alice Read topic orders", 0, "Allowed: this ACL decides.\n"),
        ("alice Describe topic orders", 0, "Allowed"),
        ("alice Write topic orders", 1, "Denied: ACLs name this resource"),
        ("alice Write topic other", 1, "Denied: ACLs name this resource"),
        ("alice Read group g", 1, "Denied: no ACL names this resource"),
        ("mallory Read topic orders", 1, "Denied: this ACL decides.\n"),
        ("root Delete topic orders", 0, "Allowed: a super user may do everything.\n"),
        ("bob Read topic orders", 1, "ask with --host ADDRESS"),
        ("bob Read topic orders --host 10.9.9.9", 0, "Allowed: this ACL decides."),
    ],
)
def test_which_acl_decides(
    words: str, code: int, said: str, known: Credentials, typed: Typed
) -> None:
    known.acls += parse_acls("alice Read topic orders")
    known.acls += parse_acls("mallory All topic '*' --deny")
    known.acls += parse_acls("bob Read topic ord --prefixed --host 10.0.0.0/8")
    assert said in typed(f"check {words}", code)


def test_the_deciding_acl_is_in_the_document(known: Credentials, typed: Typed) -> None:
    known.acls += parse_acls("alice All topic ord --prefixed")
    found = typed.json("check alice Read topic orders")
    assert found["allowed"] is True
    assert found["acl"]["operation"] == "All"
    assert (found["acl"]["name"], found["acl"]["pattern"]) == ("ord", "prefixed")


def test_what_the_brokers_do_not_show_is_unknown(known: Credentials, typed: Typed) -> None:
    known.refused[DESCRIBE_CONFIGS] = ErrorCode.cluster_authorization_failed
    assert typed("check alice Read topic orders", 1).startswith("Unknown: ")
    known.acls += parse_acls("alice Read topic orders")
    assert typed("check alice Read topic orders").startswith("Allowed")
    denied = typed.json("check bob Read topic orders", 1)
    assert denied["allowed"] is None
    assert "the brokers do not show" in denied["because"]


def test_a_setting_that_a_broker_hides_is_unknown(known: Credentials, typed: Typed) -> None:
    known.settings["super.users"] = None
    assert typed.json("check alice Read topic orders", 1)["allowed"] is None
    del known.settings["super.users"]  # Apache Kafka lists only what was given
    assert typed.json("check alice Read topic orders", 1)["allowed"] is False


def test_everybody_may_without_an_acl(known: Credentials, typed: Typed) -> None:
    known.settings["allow.everyone.if.no.acl.found"] = "true"
    assert "allow.everyone" in typed("check alice Read topic orders")
    assert "everybody may use it" in typed("describe topic orders")


def test_brokers_without_an_authorizer(known: Credentials, typed: Typed) -> None:
    known.refused = dict.fromkeys((DESCRIBE_ACLS, CREATE_ACLS), ErrorCode.security_disabled)
    assert "authorizer.class.name" in typed("list", 1)
    assert "authorizer.class.name" in typed("add alice Read topic a", 1)
    assert "everybody may do everything" in typed("check alice Read topic a")
    known.settings["authorizer.class.name"] = ""
    assert "everybody may do everything" in typed("check alice Read topic a")


@pytest.mark.parametrize(
    "words",
    [
        "add alice Raed topic orders",
        "check alice Read,Write topic orders",
        "delete alice Read --yes",
        "delete alice --deny --yes",
        "list --kind tpic",
    ],
)
def test_wrong_usage(words: str, typed: Typed) -> None:
    assert "For example" in typed(words, 2)


def test_wrong_words_get_an_example_of_the_same_command(typed: Typed) -> None:
    for words, right in {
        "check alice Read topic:orders": "check alice Read topic orders",
        "add alice Reed topic orders": "add alice Read topic orders",
        "describe topics orders": "describe topic orders",
        "list --kind topics": "list --kind topic",
    }.items():
        assert f"For example: ottla acl {right}" in typed(words, code=2), words
