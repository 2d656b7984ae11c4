from collections.abc import Callable
from pathlib import Path

import pytest
from bench.apache_kafka import KafkaError, KafkaJars
from conformance.target import Target
from conformance.tools.base import Tools

from conformance import apache_tools

JARS = KafkaJars(Path("jars"), "java")


def passing(tools: Tools) -> None:
    assert tools.bootstrap == "127.0.0.1:1"


def failing(tools: Tools) -> None:
    raise AssertionError("'x' is not\n in: y")


def breaking(tools: Tools) -> None:
    raise KafkaError("TopicCommand ended with 1")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, str, str]]]:
    monkeypatch.setattr(apache_tools, "TESTS", (passing, failing, breaking))

    def run(*wanted: str) -> list[tuple[str, str, str]]:
        outcomes = apache_tools.run(JARS, "127.0.0.1:1", wanted)
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


def test_the_dump_wants_a_data_folder() -> None:
    outcomes = list(apache_tools.dump(JARS, Target("127.0.0.1:1", None), []))
    assert [one.state for one in outcomes] == ["skipped"]
    assert list(apache_tools.dump(JARS, Target("127.0.0.1:1", None), ["offsets"])) == []


def test_faults_of_the_dump_are_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apache_tools.log_dump, "faults", lambda jars, data: ["a mismatch"])
    (outcome,) = apache_tools.dump(JARS, Target("127.0.0.1:1", tmp_path), [])
    assert outcome.state == "failed"
    assert "a mismatch" in outcome.reason


def test_names_are_unique() -> None:
    assert len(apache_tools.names()) == len(set(apache_tools.names()))
