"""`ottla pipeline check`: all problems of a file at once, or what each pipeline will do."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.failures import Failed
from ottla.cli.pipeline import check as pipeline_check
from ottla.cli.pipeline.check import check_file
from ottla.pipelines import PipelineError
from ottla.pipelines.file import build
from ottla.pipelines.program import sample
from ottla.pipelines.source.judge import Sample


def pipeline(name: str, topic: str, on_rejects: str = "stop") -> Any:
    return SimpleNamespace(
        name=name,
        source=SimpleNamespace(
            topic=topic,
            kafka=None,
            schema=None,
            key_schema=None,
            unknown_fields="drop",
            registry=None,
            rejects="separate",
            source_format="plain",
        ),
        delivery=SimpleNamespace(
            group=f"{name}-group", guarantee="exactly once", on_rejects=on_rejects
        ),
        sink=SimpleNamespace(target=f"/tables/{name}"),
    )


def spec(*pipelines: Any) -> Any:
    return SimpleNamespace(file=Path("flights.toml"), pipelines=pipelines)


@pytest.fixture(autouse=True)
def broker_with_topic_t(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SimpleNamespace(name="t", earliest={0: 5, 1: 0}, latest={0: 8, 1: 4})

    def look_up(asked: Any) -> Any:
        if asked.source.topic != "t":
            raise Failed(f"there is no topic {asked.source.topic!r}.")
        return SimpleNamespace(topics={"t": state})

    monkeypatch.setattr(pipeline_check, "look_up_topic", look_up)
    samples(monkeypatch, Sample(3, 3, 0, ()))


def samples(monkeypatch: pytest.MonkeyPatch, found: Sample | str) -> None:
    monkeypatch.setattr(sample, "parse_newest", lambda *_, **__: found)


REASON = "key is not a JSON object of the schema"


def test_a_schema_that_fits_nothing_is_a_problem_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples(monkeypatch, Sample(100, 0, 0, ((REASON, 100),)))
    with pytest.raises(Failed, match=f"none of the newest 100 records fits the schema: {REASON}"):
        check_file(spec(pipeline("one", "t")), with_spark=True, as_json=False)


def test_a_pipeline_that_continues_has_no_problem_with_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    samples(monkeypatch, Sample(100, 0, 0, ((REASON, 100),)))
    check_file(spec(pipeline("one", "t", "continue")), with_spark=False, as_json=False)
    assert (
        f"one: none of the newest 100 records fits the schema: {REASON}." in capsys.readouterr().err
    )


def test_what_is_not_checked_is_said_and_no_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    samples(monkeypatch, "the schema is in a registry")
    check_file(spec(pipeline("one", "t")), with_spark=False, as_json=False)
    said = capsys.readouterr().err
    assert "the newest records were not checked: the schema is in a registry." in said


def test_what_a_pipeline_reads_and_writes(capsys: pytest.CaptureFixture[str]) -> None:
    check_file(spec(pipeline("one", "t")), with_spark=False, as_json=True)
    (document,) = json.loads(capsys.readouterr().out)
    assert document == {
        "pipeline": "one",
        "topic": "t",
        "partitions": 2,
        "messages": 7,
        "group": "one-group",
        "target": "/tables/one",
        "delivery": "exactly once",
        "sample": {
            "records": 3,
            "parsed": 3,
            "not_checked": 0,
            "reasons": [],
            "unknown": 0,
            "unknown_fields": [],
        },
        "columns": None,
        "notices": [],
    }


def test_nothing_wrong_says_what_was_not_planned(capsys: pytest.CaptureFixture[str]) -> None:
    check_file(spec(pipeline("one", "t")), with_spark=False, as_json=False)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "Nothing wrong was found. The queries were not planned (--no-spark)."


def test_one_problem_is_the_message() -> None:
    file = spec(pipeline("one", "t"), pipeline("two", "u"))
    with pytest.raises(Failed, match=r"^there is no topic 'u'"):
        check_file(file, with_spark=False, as_json=False)


def test_all_problems_are_listed_and_spark_is_not_started() -> None:
    file = spec(pipeline("one", "u"), pipeline("two", "v"))
    with pytest.raises(Failed, match=r"flights\.toml has 2 problems") as failure:
        check_file(file, with_spark=True, as_json=False)
    assert failure.value.hint == "there is no topic 'u'.\n  there is no topic 'v'."


def test_what_spark_refuses_of_each_query_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """tests/pipelines/file/test_build.py shows what Spark refuses."""

    def refuse(_: Any, pipeline: Any) -> None:
        raise PipelineError(f"transform.sql: {pipeline.name} has no column `m`")

    monkeypatch.setattr(pipeline_check, "spark_of", lambda _: nullcontext("Spark"))
    monkeypatch.setattr(build, "plan_pipeline", refuse)
    one = "one: transform.sql: one has no column `m`"
    with pytest.raises(Failed, match=f"^{one}$"):
        check_file(spec(pipeline("one", "t")), with_spark=True, as_json=False)
    with pytest.raises(Failed, match=r"flights\.toml has 2 problems") as failure:
        check_file(spec(pipeline("one", "t"), pipeline("two", "t")), with_spark=True, as_json=False)
    assert failure.value.hint == f"{one}\n  two: transform.sql: two has no column `m`"
    assert "Nothing wrong" not in capsys.readouterr().out
