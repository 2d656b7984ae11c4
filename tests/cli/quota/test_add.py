"""`ottla quota`: what is added, listed, described and deleted, on a cluster that keeps it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.client.admin.quotas import ALTER_QUOTAS, DESCRIBE_QUOTAS
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

Names = tuple[tuple[str, str | None], ...]


class Kept:
    """The quotas of a cluster, which requests change."""

    def __init__(self) -> None:
        self.quotas: dict[Names, dict[str, float]] = {}
        self.refused = ErrorCode.none

    def answers(self) -> Any:
        return {DESCRIBE_QUOTAS: [self.describe], ALTER_QUOTAS: [self.alter]}

    def describe(self, address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_QUOTAS, request.__version__)
        entries = tuple(
            build.EntryData(
                entity=tuple(
                    build.EntityData(entity_type=type, entity_name=name) for type, name in names
                ),
                values=tuple(build.ValueData(key=key, value=value) for key, value in each.items()),
            )
            for names, each in self.quotas.items()
        )
        return build.DescribeClientQuotasResponse(
            error_code=self.refused, error_message=None, entries=entries
        )

    def alter(self, address: str, request: Any) -> Any:
        build = messages_of(ALTER_QUOTAS, request.__version__)
        (entry,) = request.entries
        names = tuple((each.entity_type, each.entity_name) for each in entry.entity)
        kept = self.quotas.setdefault(names, {})
        for each in entry.ops:
            if each.remove:
                del kept[each.key]
            else:
                kept[each.key] = each.value
        if not kept:
            del self.quotas[names]
        answer = build.EntryData(error_code=self.refused, error_message=None, entity=())
        return build.AlterClientQuotasResponse(entries=(answer,))


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def cluster(kept: Kept) -> Any:
    return SimpleNamespace(client=FakeCluster(kept.answers()).client())


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_quotas_come_and_go(kept: Kept, cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["quota", "add", "--user", "alice", "producer_byte_rate=10MB", "request_percentage=50%"]
    assert carry_out(words, cluster) == 0
    words = ["quota", "add", "--client-defaults", "--user-defaults", "controller_mutation_rate=0.5"]
    assert carry_out(words, cluster) == 0
    assert carry_out(["quota", "add", "--ip", "::1", "connection_creation_rate=5"], cluster) == 0
    assert kept.quotas == {
        (("user", "alice"),): {"producer_byte_rate": 1e7, "request_percentage": 50},
        (("user", None), ("client-id", None)): {"controller_mutation_rate": 0.5},
        (("ip", "::1"),): {"connection_creation_rate": 5},
    }
    capsys.readouterr()
    assert carry_out(["quota", "list"], cluster) == 0
    assert lines(capsys) == [
        "user client ip quota value",
        "<default> <default> controller_mutation_rate 0.5/s",
        "alice producer_byte_rate 10.0 MB/s",
        "alice request_percentage 50 %",
        "::1 connection_creation_rate 5/s",
    ]
    assert carry_out(["quota", "list", "--user-defaults", "--json"], cluster) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "user": "",
            "client": "",
            "ip": None,
            "quota": "controller_mutation_rate",
            "value": 0.5,
        }
    ]
    words = ["quota", "delete", "--user", "alice", "request_percentage", "--yes"]
    assert carry_out(words, cluster) == 0
    assert kept.quotas[(("user", "alice"),)] == {"producer_byte_rate": 1e7}
    assert carry_out(["quota", "delete", "--user", "alice", "--yes"], cluster) == 0
    assert (("user", "alice"),) not in kept.quotas


def test_what_applies_to_a_client(
    kept: Kept, cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.quotas = {
        (("user", None),): {"producer_byte_rate": 1000, "consumer_byte_rate": 1000},
        (("user", "alice"), ("client-id", None)): {"producer_byte_rate": 2000},
        (("client-id", "etl"),): {"request_percentage": 5},
        (("ip", None),): {"connection_creation_rate": 7},
    }
    words = ["quota", "describe", "--user", "alice", "--client", "etl"]
    assert carry_out(words, cluster) == 0
    assert lines(capsys) == [
        "quota value of",
        "producer_byte_rate 2.0 kB/s user alice, default client-id",
        "consumer_byte_rate 1.0 kB/s default user",
        "request_percentage 5 % client-id etl",
    ]
    assert carry_out(["quota", "describe", "--client", "x", "--json"], cluster) == 0
    assert [each["of"] for each in json.loads(capsys.readouterr().out)] == ["default user"] * 2
    assert carry_out(["quota", "describe", "--ip", "10.0.0.7"], cluster) == 0
    assert lines(capsys)[1] == "connection_creation_rate 7/s default ip"
    kept.quotas = {}
    assert carry_out(["quota", "describe", "--user", "bob"], cluster) == 0
    assert "No quota applies to it." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add", "producer_byte_rate=1"], "say whom the quota is for"),
        (["add", "--user", "a", "--user-defaults", "producer_byte_rate=1"], "exclude each other"),
        (["add", "--user", "a", "--ip", "::1", "producer_byte_rate=1"], "leave out --user"),
        (["add", "--user", "", "producer_byte_rate=1"], "must have a name"),
        (["add", "--user", "a", "producer_rate=1"], "is no quota of user a"),
        (["add", "--user", "a", "connection_creation_rate=1"], "is no quota of user a"),
        (["add", "--user", "a", "producer_byte_rate=fast"], "For example: producer_byte_rate=10MB"),
        (["add", "--user", "a", "request_percentage=0"], "is not a number above 0"),
        (["add", "--user", "a", "producer_byte_rate"], "NAME=VALUE"),
        (["describe", "--user-defaults"], "one client"),
        (["describe", "--ip", "example.org"], "is not an IP address"),
        (["describe"], "say whom the quota is for"),
        (["delete"], "say whom the quota is for"),
    ],
)
def test_wrong_usage(
    words: list[str], why: str, cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(["quota", *words], cluster) == 2
    assert why in capsys.readouterr().err


def test_what_is_not_there_cannot_be_deleted(
    kept: Kept, cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(["quota", "delete", "--user", "a", "--yes"], cluster) == 1
    assert "user a has no quota" in capsys.readouterr().err
    kept.quotas[(("user", "a"),)] = {"producer_byte_rate": 1}
    words = ["quota", "delete", "--user", "a", "consumer_byte_rate", "--yes"]
    assert carry_out(words, cluster) == 1
    assert "user a has no consumer_byte_rate" in capsys.readouterr().err


def test_a_refusal_is_told(kept: Kept, cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    kept.refused = ErrorCode.cluster_authorization_failed
    assert carry_out(["quota", "list"], cluster) == 1
    assert "DescribeConfigs cluster" in " ".join(capsys.readouterr().err.split())
    assert carry_out(["quota", "add", "--user", "a", "producer_byte_rate=1"], cluster) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "change the quotas of user a" in said
    assert "ottla acl add User:ANONYMOUS AlterConfigs cluster" in said
