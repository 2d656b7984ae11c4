from collections.abc import Callable
from pathlib import Path

import pytest
from components.apache_kafka import KafkaError, KafkaJars
from conformance.replicas import Replicas
from conformance.target import Target
from conformance.tools.base import Tools

from conformance import apache_tools, log_dump
from ottla.testing import KitError

JARS = KafkaJars(Path("jars"), "java")
ADMIN = {
    "security.protocol": "SASL_SSL",
    "ssl.ca.location": "authority.pem",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "admin",
    "sasl.password": "word",
}


def passing(tools: Tools) -> None:
    assert tools.bootstrap == "127.0.0.1:1"


def failing(tools: Tools) -> None:
    raise AssertionError("'x' is not\n in: y")


def breaking(tools: Tools) -> None:
    raise KafkaError("TopicCommand ended with 1")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, str, str]]]:
    monkeypatch.setattr(apache_tools, "TESTS", (passing, failing, breaking))
    monkeypatch.setattr(apache_tools, "WITH_SEVERAL", ())

    def run(*wanted: str) -> list[tuple[str, str, str]]:
        outcomes = apache_tools.run(JARS, Target("127.0.0.1:1"), wanted)
        return [(one.name, one.state, one.reason) for one in outcomes]

    return run


def test_each_test_has_an_outcome_and_its_reason(
    run: Callable[..., list[tuple[str, str, str]]],
) -> None:
    assert run() == [
        ("passing", "passed", ""),
        ("failing", "failed", "'x' is not in: y"),
        ("breaking", "failed", "TopicCommand ended with 1"),
    ]


def test_only_what_is_wanted_runs(run: Callable[..., list[tuple[str, str, str]]]) -> None:
    assert [name for name, _, _ in run("breaking")] == ["breaking"]


def test_what_is_of_users_runs_as_an_administrator_on_secured_brokers(
    run: Callable[..., list[tuple[str, str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def of_users(tools: Tools) -> None:
        assert tools.command_config is not None
        assert tools.config() == ["--command-config", str(tools.command_config)]
        said.extend(tools.command_config.read_text().splitlines())

    monkeypatch.setattr(apache_tools, "TESTS", ())
    monkeypatch.setattr(apache_tools, "WITH_USERS", (of_users,))
    assert run() == []
    target = Target("127.0.0.1:1", is_secured=True)
    target.admin = ADMIN
    assert [one.state for one in apache_tools.run(JARS, target, ())] == ["passed"]
    assert "ssl.truststore.location=authority.pem" in said
    assert said[-1].endswith('ScramLoginModule required username="admin" password="word";')


def test_a_tool_that_cannot_log_in_is_left_out_on_secured_brokers(
    run: Callable[..., list[tuple[str, str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apache_tools, "WITHOUT_LOGIN", (passing,))
    assert run("passing") == [("passing", "passed", "")]
    target = Target("127.0.0.1:1", is_secured=True)
    target.admin = ADMIN
    (outcome,) = apache_tools.run(JARS, target, ["passing"])
    assert (outcome.state, outcome.reason[:28]) == ("skipped", "Kafka's tool takes no settin")


def test_what_wants_several_brokers_runs_on_three_only(
    run: Callable[..., list[tuple[str, str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apache_tools, "TESTS", ())
    monkeypatch.setattr(apache_tools, "WITH_SEVERAL", (failing,))
    assert run() == []
    outcomes = apache_tools.run(JARS, Target("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"), ())
    assert [one.name for one in outcomes] == ["failing"]


def test_topics_have_as_many_replicas_as_there_are_brokers(tmp_path: Path) -> None:
    assert Tools(JARS, "a:1", tmp_path).replicas == 1
    assert Tools(JARS, "a:1,b:2,c:3", tmp_path).replicas == 3


def test_the_dump_wants_a_data_folder() -> None:
    outcomes = list(apache_tools.after_the_stop(JARS, Target("127.0.0.1:1"), []))
    assert [one.state for one in outcomes] == ["skipped"]
    assert list(apache_tools.after_the_stop(JARS, Target("127.0.0.1:1"), ["offsets"])) == []


def test_each_brokers_folder_is_dumped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Path] = []

    def faults(jars: KafkaJars, data: Path) -> list[str]:
        looked_at.append(data)
        return ["a mismatch"] if data.name == "b" else []

    monkeypatch.setattr(log_dump, "faults", faults)
    folders = [tmp_path / name for name in "abc"]
    (outcome,) = apache_tools.after_the_stop(JARS, Target("127.0.0.1:1", folders), [])
    assert looked_at == folders
    assert outcome.state == "failed"
    assert "1 faults: ['a mismatch']" in outcome.reason


def test_replicas_that_differ_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target("127.0.0.1:1", [tmp_path])
    wanted = [apache_tools.IDENTICAL]
    target.replicas = Replicas({("t", 0): (tmp_path, tmp_path)}, frozenset())
    assert [one.state for one in apache_tools.after_the_stop(JARS, target, wanted)] == ["passed"]
    monkeypatch.setattr(Replicas, "differences", lambda self: ["t-0: replicas differ"])
    (outcome,) = apache_tools.after_the_stop(JARS, target, wanted)
    assert (outcome.state, "t-0: replicas differ" in outcome.reason) == ("failed", True)
    target.replicas = Replicas({("t", 0): (tmp_path,)}, frozenset())
    (outcome,) = apache_tools.after_the_stop(JARS, target, wanted)
    assert "no partition with several replicas" in outcome.reason


def test_brokers_that_do_not_stop_well_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(self: Target) -> None:
        raise KitError("broker 2 did not end")

    monkeypatch.setattr(Target, "stop", stop)
    (outcome,) = apache_tools.after_the_stop(JARS, Target("127.0.0.1:1", [tmp_path]), [])
    assert (outcome.name, outcome.state) == ("the_brokers_stop", "failed")
    assert outcome.reason == "broker 2 did not end"


def test_names_are_unique() -> None:
    assert len(apache_tools.names()) == len(set(apache_tools.names()))
