"""Completion of names that only a broker knows, of settings, and of words."""

from pathlib import Path

import pytest
from tests.client.answers import groups
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import root
from ottla.cli.completion import COMPLETION_VARIABLE
from ottla.cli.context import Cluster
from ottla.cli.main import main
from ottla.client.admin.groups import Group
from ottla.client.client import Client
from ottla.client.profiles import Profile, Profiles, write_profiles


@pytest.fixture(autouse=True)
def commands_are_imported() -> None:
    """Before a client is replaced: a module imported then would keep the substitute."""
    root().leaves()


def offers(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The words that bash is offered."""
    return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()]


class Asked:
    """The clusters that are asked, in the place of those that the command lines mean."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clusters: list[tuple[str, tuple[str, ...]]] = []
        billing = Group("billing", "empty", "classic", None, 2, False, ())
        fake = FakeCluster(groups({"billing": billing}, {}))
        fake.leaders = dict.fromkeys([("orders", 0), ("returns", 0), ("__consumer_offsets", 0)], 1)

        def client(cluster: Cluster) -> Client:
            self.clusters.append((cluster.bootstrap, cluster.client_config))
            return fake.client()

        monkeypatch.setattr(Cluster, "client", property(client))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("ottla topic describe or", "localhost:9092"),
        ("ottla topic describe --bootstrap other:9093 or", "other:9093"),
    ],
)
def test_topics_come_from_the_broker_that_the_command_would_use(
    line: str,
    address: str,
    asked: Asked,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = line.split()
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert main(words[1:]) == 0
    assert capsys.readouterr().out == "plain,orders\n"
    assert asked.clusters == [(address, ())]


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
    asked: Asked,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = line.split()
    monkeypatch.setenv(COMPLETION_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert main(words[1:]) == 0
    assert offers(capsys) == offered.split()
    assert asked.clusters == []


def test_the_profile_says_which_broker_to_ask(
    asked: Asked,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path = tmp_path / "profiles.toml"
    monkeypatch.setenv("OTTLA_PROFILES", str(path))
    write_profiles(path, Profiles({"prod": Profile("prod:1", {"a": "b"}), "dev": Profile("dev:2")}))
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
    assert asked.clusters == [("prod:1", ("a=b",))]


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_the_same(
    shell: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    path = tmp_path / "profiles.toml"
    write_profiles(path, Profiles({"dev": Profile("dev:2")}))
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
