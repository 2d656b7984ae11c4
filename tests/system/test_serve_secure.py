"""`ottla serve --secure`: from nothing to a secured broker and a command, and the next start."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.security.development.certificates import issue, read_authority, write
from ottla.security.development.hosts import own_hosts
from ottla.testing import BrokerProcess

WAIT_S = 60


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "profiles.toml"
    monkeypatch.setenv("OTTLA_PROFILES", str(path))
    for name in ("OTTLA_BOOTSTRAP", "OTTLA_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return path


def typed(*words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *words],
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def output(broker: BrokerProcess) -> str:
    return broker.data.with_name(f"{broker.data.name}.stdout").read_text()


def wait_until_said(broker: BrokerProcess, text: str) -> None:
    until_s = time.monotonic() + WAIT_S
    while text not in broker.said():
        assert time.monotonic() < until_s, broker.said()
        time.sleep(0.1)


def test_from_nothing_to_a_secured_broker(
    new_broker: Callable[..., BrokerProcess], profiles: Path
) -> None:
    broker = new_broker("--secure")
    said = output(broker)
    (password,) = re.findall(r"password (\S+) \(shown this once\)", said)
    assert password in profiles.read_text()
    assert profiles.stat().st_mode & 0o777 == 0o600
    typed("topic", "create", "t", "--profile", "secure")
    typed("user", "list", "-b", broker.bootstrap, code=1)
    assert broker.stop() == 0
    broker.start()
    again = output(broker)[len(said) :]
    assert password not in again
    assert "client.properties" in again
    assert typed("topic", "list", "--profile", "secure").split()[-3:] == ["t", "1", "1"]


def test_a_broker_that_was_there_before(
    new_broker: Callable[..., BrokerProcess], profiles: Path
) -> None:
    broker = new_broker()
    typed("topic", "create", "t", "-b", broker.bootstrap)
    assert broker.stop() == 0
    broker.options.append("--secure")
    broker.start()
    assert "t" in typed("topic", "list", "--profile", "secure").split()


def test_an_admin_who_was_there_before_keeps_its_password(
    new_broker: Callable[..., BrokerProcess], profiles: Path
) -> None:
    broker = new_broker("-c", "ottla.first.users=SCRAM-SHA-512=[name=admin,password=other]")
    assert broker.stop() == 0
    broker.options[:] = ["--secure"]
    broker.start()
    wait_until_said(broker, "the user admin has another password than that in")
    typed("topic", "list", "--profile", "secure", code=1)
    typed("topic", "list", "--profile", "secure", "--client-config", "sasl.password=other")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-c", "super.users=User:me"], "--secure sets super.users itself"),
        (["-c", "listeners=PLAINTEXT://:1"], "set the same property"),
        (["--id", "1", "--zookeeper", "127.0.0.1:1"], "ottla cluster start --secure"),
    ],
)
def test_what_does_not_go_together(
    words: list[str], why: str, tmp_path: Path, profiles: Path
) -> None:
    said = typed("serve", "--secure", "--data", str(tmp_path / "data"), *words, code=2)
    assert why in said
    assert not profiles.exists()
    assert not (tmp_path / "data").exists(), "and no password is made that nobody sees"


def test_a_certificate_that_expires_soon(
    new_broker: Callable[..., BrokerProcess], profiles: Path
) -> None:
    broker = new_broker("--secure")
    assert typed("health", "--profile", "secure").startswith("healthy")
    folder = broker.data / "secure"
    authority = read_authority(folder / "authority.key", folder / "authority.pem")
    # Of the same names, or it would not be taken (ssl.allow.san.changes).
    soon = issue(authority, "broker", [*own_hosts(), "127.0.0.1"], 12)
    write(folder / "broker.pem", soon.together, replace=True)
    wait_until_said(broker, "expires in 11 days")  # changed files are read within seconds
    said = typed("health", "--profile", "secure", code=1)
    assert "the certificate of broker 1 expires in 11 days" in said
