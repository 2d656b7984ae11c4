"""Completion of names that only a broker knows, of settings, and of words."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli import client
from ottla.cli.app import root
from ottla.cli.completion import COMPLETION_VARIABLE
from ottla.cli.main import main
from ottla.cli.profiles import Profile, Profiles, write_profiles


@pytest.fixture(autouse=True)
def commands_are_imported() -> None:
    """Before `client.connect` is replaced: a module imported then would keep the substitute."""
    root().leaves()


def offers(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The words that bash is offered."""
    return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()]


class KnownTopics:
    def topics(self) -> list[str]:
        return ["orders", "returns", "__consumer_offsets"]


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("ottla topic describe or", "localhost:9092"),
        ("ottla topic describe --bootstrap other:9093 or", "other:9093"),
    ],
)
def test_topics_come_from_the_broker_that_the_command_would_use(
    line: str, asked: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses: list[str] = []

    def connect(bootstrap: str, *_: Any, **__: Any) -> KnownTopics:
        addresses.append(bootstrap)
        return KnownTopics()

    monkeypatch.setattr(client, "connect", connect)
    words = line.split()
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert main(words[1:]) == 0
    assert capsys.readouterr().out == "plain,orders\n"
    assert addresses == [asked]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ottla topic create t -c retention.", "retention.bytes= retention.ms="),
        ("ottla topic alter t --unset cleanup", "cleanup.policy"),
        ("ottla config alter topic t segment.b", "segment.bytes="),
        ("ottla config alter broker 1 log.segment.b", "log.segment.bytes="),
        ("ottla config describe broker 1 zookeeper.s", "zookeeper.session.timeout.ms"),
        ("ottla serve -c num.part", "num.partitions="),
        ("ottla serve --log-level w", "warning"),
        ("ottla cluster start -c default.rep", "default.replication.factor="),
        ("ottla consume t --from b", "beginning"),
        ("ottla consume t --from 15", "15m"),
    ],
)
def test_settings_and_words_need_no_broker(
    line: str,
    offered: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "connect", lambda *_: pytest.fail("connected"))
    words = line.split()
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert main(words[1:]) == 0
    assert offers(capsys) == offered.split()


def test_the_profile_says_which_broker_to_ask(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "profiles.toml"
    monkeypatch.setenv("OTTLA_PROFILES", str(path))
    write_profiles(path, Profiles({"prod": Profile("prod:1", {"a": "b"}), "dev": Profile("dev:2")}))
    asked: list[tuple[str, Any]] = []

    def connect(bootstrap: str, client_config: Any, **_: Any) -> KnownTopics:
        asked.append((bootstrap, client_config))
        return KnownTopics()

    monkeypatch.setattr(client, "connect", connect)
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    for line, offered in {
        "ottla topic describe --profile prod or": "orders",
        "ottla topic describe --profile p": "prod",
        "ottla profile use d": "dev",
    }.items():
        words = line.split()
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        assert main(words[1:]) == 0
        assert offers(capsys) == [offered], line
    assert asked == [("prod:1", ("a=b",))]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_the_same(
    shell: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path = tmp_path / "profiles.toml"
    write_profiles(path, Profiles({"dev": Profile("dev:2")}))
    groups = SimpleNamespace(groups=lambda: [SimpleNamespace(group_id="billing")])
    monkeypatch.setattr(client, "connect", lambda *_, **__: groups)
    monkeypatch.setenv("OTTLA_PROFILES", str(path))
    monkeypatch.setenv(COMPLETION_VARIABLE, f"{shell}_complete")
    for line, offered in {
        "ottla group describe b": "billing",
        "ottla consume t --group b": "billing",
        "ottla group describe --profile d": "dev",
        "ottla profile remove d": "dev",
        "ottla be": "bench",
    }.items():
        *_, last = words = line.split()
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", last if shell == "fish" else str(len(words) - 1))
        assert main(words[1:]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"plain\n{offered}\n" if shell == "zsh" else f"plain,{offered}"), out
