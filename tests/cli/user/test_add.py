"""`ottla user`: passwords come from a file or from standard input, and nothing changes unasked."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.credentials import Credentials
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.client.admin.users import ALTER_USERS
from ottla.protocol.errors import ErrorCode
from ottla.security.acl_words import parse_acls


@pytest.fixture
def known() -> Credentials:
    return Credentials()


@pytest.fixture
def cluster(known: Credentials) -> Any:
    fake = FakeCluster(known.answers())
    return SimpleNamespace(client=fake.client(), fake=fake)


def test_the_password_of_standard_input(
    known: Credentials,
    cluster: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\nmore\n"))
    assert carry_out(["user", "add", "alice"], cluster) == 0
    assert capsys.readouterr().out == "Added user alice, with a password for SCRAM-SHA-512.\n"
    assert known.passwords == {"alice": {2: 4096}}
    (request,) = cluster.fake.requests(ALTER_USERS)
    assert b"secret" not in request.upsertions[0].salted_password


def test_what_is_no_text_is_no_password(
    known: Credentials,
    cluster: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\n"), "utf-8"))
    assert carry_out(["user", "add", "alice"], cluster) == 2
    assert "standard input is not UTF-8 text" in capsys.readouterr().err
    assert not known.passwords


def test_the_password_of_a_file_for_both_mechanisms(
    known: Credentials, cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "password").write_text("secret\r\n")
    words = ["user", "add", "alice", "--password-file", str(tmp_path / "password"), "--json"]
    words += ["-m", "scram-sha-256", "-m", "SCRAM-SHA-512", "--iterations", "8192"]
    assert carry_out(words, cluster) == 0
    assert known.passwords == {"alice": {1: 8192, 2: 8192}}
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "user": "alice",
        "logins": [
            {"mechanism": "SCRAM-SHA-256", "iterations": 8192},
            {"mechanism": "SCRAM-SHA-512", "iterations": 8192},
        ],
    }


def test_a_user_that_exists_is_not_changed_unasked(
    known: Credentials,
    cluster: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    known.passwords["alice"] = {2: 16384}
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    assert carry_out(["user", "add", "alice"], cluster) == 1
    assert "add --replace" in capsys.readouterr().err
    assert known.passwords["alice"] == {2: 16384}
    assert carry_out(["user", "add", "alice", "--replace"], cluster) == 0
    assert known.passwords["alice"] == {2: 4096}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["alice"], "no password for user 'alice'"),
        (["alice", "--password-file", "nowhere"], "cannot read nowhere"),
        (["alice", "--iterations", "100"], "4096 or more"),
        (["alice", "-m", "PLAIN"], "PLAIN"),
        ([""], "must have a name"),
        (["User:alice"], "Give the name alone: ottla user add alice"),
    ],
)
def test_wrong_usage(
    words: list[str],
    why: str,
    known: Credentials,
    cluster: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert carry_out(["user", "add", *words], cluster) == 2
    assert why in capsys.readouterr().err
    assert known.passwords == {}


def test_lists_and_descriptions(
    known: Credentials, cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(["user", "list"], cluster) == 0
    assert "ottla user add" in capsys.readouterr().err
    known.passwords |= {"bob": {2: 4096}, "alice": {1: 4096, 2: 8192}}
    known.acls += parse_acls("alice Read topic orders")
    assert carry_out(["user", "list"], cluster) == 0
    assert capsys.readouterr().out.splitlines() == [
        "user   logs in with",
        "alice  SCRAM-SHA-256 (4096), SCRAM-SHA-512 (8192)",
        "bob    SCRAM-SHA-512 (4096)",
    ]
    assert carry_out(["user", "describe", "alice", "--json"], cluster) == 0
    (alice,) = json.loads(capsys.readouterr().out)
    assert [each["operation"] for each in alice["acls"]] == ["Read"]
    assert carry_out(["user", "describe", "bbo"], cluster) == 1
    assert "Did you mean 'bob'?" in capsys.readouterr().err


def test_deletion(known: Credentials, cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    known.passwords |= {"bob": {2: 4096}, "alice": {1: 4096, 2: 8192}}
    assert carry_out(["user", "delete", "alice", "-m", "SCRAM-SHA-256", "--yes"], cluster) == 0
    assert "now logs in with SCRAM-SHA-512 only" in capsys.readouterr().out
    assert carry_out(["user", "delete", "alice", "-m", "SCRAM-SHA-256", "--yes"], cluster) == 1
    assert carry_out(["user", "delete", "alice", "bob", "--yes"], cluster) == 0
    assert known.passwords == {"bob": {}, "alice": {}}


def test_a_refusal_is_a_sentence(
    known: Credentials, cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known.refused[ALTER_USERS] = ErrorCode.cluster_authorization_failed
    (tmp_path / "password").write_text("secret")
    words = ["user", "add", "alice", "--password-file", str(tmp_path / "password")]
    assert carry_out(words, cluster) == 1
    assert "cannot set the password of user 'alice': cluster auth" in capsys.readouterr().err
