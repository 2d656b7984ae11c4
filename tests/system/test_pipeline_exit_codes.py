"""Every way a run of `ottla pipeline run` can end, with its exit code: a scheduler sees no more.

The command runs whole, in this process; only Spark, the queries and the broker are not there.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from tests.pipelines.progress.runs import RUN

from ottla.cli.main import main
from ottla.cli.pipeline import run as pipeline_run
from ottla.pipelines.errors import MostlyRejectedError, PipelineError
from ottla.pipelines.file import build
from ottla.pipelines.program import pipeline as one_pipeline
from ottla.pipelines.program import session
from ottla.pipelines.progress.report import REPORTERS
from ottla.pipelines.progress.status import LagReader

ONE = """
[[pipeline]]
name = "{name}"
[pipeline.source]
bootstrap_servers = "localhost:9092"
topic = "{name}"
schema = "n INT"
[pipeline.sink]
target = "./lake/{name}"
[pipeline.delivery]
checkpoint = "./cp/{name}"
group = "{name}-delta"
"""


class Query:
    """A query that has ended with a state, or runs until it is stopped."""

    def __init__(self, name: str, ended: str | None, failure: str | None = None) -> None:
        self.id = f"id-{name}"
        self.name = name
        self.failure = failure
        self._ended = threading.Event()
        self.state = ended or "running"
        if ended is not None:
            self._ended.set()

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return not self._ended.is_set()

    def exception(self) -> PipelineError | None:
        return None if self.failure is None else PipelineError(self.failure)

    def stop(self) -> None:
        self.state = "stopped"
        self._ended.set()


class RejectingQuery(Query):
    """A query that has stopped because its schema does not fit."""

    def exception(self) -> PipelineError | None:
        return MostlyRejectedError(str(self.failure))


class Reporter:
    """Keeps the state of one query's run in memory."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.committer = None
        self.latest = None

    @property
    def run(self) -> Any:
        state: Any = self.query.state
        return replace(RUN, state=state, failure=self.query.failure)

    def stop(self, by: str) -> None:
        self.query.stop()

    def finish(self) -> None:
        assert not self.query.isActive


class Starting:
    """The state of a run before its query, in memory."""

    ends: list[tuple[str, str, str | None]] = []  # noqa: RUF012 - emptied by the fixture

    def __init__(self, _kafka: Any, _group: str, _topic: str, name: str) -> None:
        self.run = RUN
        self.name = name
        self._has_ended = False

    def handed_over(self, _committer: Any) -> None:
        self._has_ended = True

    def end(self, state: str, *, failure: str | None = None, by: str | None = None) -> None:
        if not self._has_ended:
            self._has_ended = True
            self.ends.append((self.name, state, failure))


Start = Callable[[Any], Query]


class Command:
    """`ottla pipeline run --json` of a file whose pipelines start as they are told to."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capfd = capfd
        self.starts: dict[str, Start] = {}
        self.traces = folder / "state" / "traces"
        self.lines: list[dict[str, Any]] = []
        self.err = ""

    def run(self, **starts: Start) -> int:
        self.starts = starts
        file = self.folder / "several.toml"
        file.write_text("".join(ONE.format(name=name) for name in starts))
        code = main(["pipeline", "run", str(file), "--json"])
        out, self.err = self.capfd.readouterr()
        self.lines = [json.loads(line) for line in out.splitlines()]
        return code

    def last(self, name: str) -> dict[str, Any]:
        return [line for line in self.lines if line["pipeline"] == name][-1]

    def start_pipeline(self, spark: Any, spec: Any, _run: Any) -> Query:
        query = self.starts[spec.name](spark)
        REPORTERS[query.id] = Reporter(query)  # type: ignore[assignment]
        return query


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    made = Command(tmp_path, capfd)
    spark = SimpleNamespace(stop=lambda: None)
    monkeypatch.setenv("OTTLA_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(pipeline_run, "look_up_topic", lambda _pipeline: None)
    monkeypatch.setattr(session, "check_newest", lambda _pipeline, _cluster: None)
    monkeypatch.setattr(one_pipeline, "StartingRun", Starting)
    monkeypatch.setattr(session, "SIGNAL_S", 0.01)
    monkeypatch.setattr(session, "TICK_S", 0.01)
    monkeypatch.setattr(LagReader, "read", lambda _self, _offsets: None)
    monkeypatch.setattr(build, "open_session", lambda *_args, **_given: spark)
    monkeypatch.setattr(build, "start_pipeline", made.start_pipeline)
    monkeypatch.setattr(Starting, "ends", [])
    yield made
    for name in made.starts:
        REPORTERS.pop(f"id-{name}", None)


def finishes(_spark: Any) -> Query:
    return Query("numbers", "finished")


def raises(error: BaseException) -> Start:
    def start(_spark: Any) -> Query:
        raise error

    return start


def test_a_run_that_finishes_ends_with_0(command: Command) -> None:
    assert command.run(numbers=finishes) == 0
    assert command.last("numbers")["state"] == "finished"


def test_a_pipeline_that_cannot_start_ends_with_1_and_its_reason(command: Command) -> None:
    assert command.run(numbers=raises(PipelineError("There is no topic numbers"))) == 1
    assert command.last("numbers")["state"] == "failed"
    assert command.last("numbers")["failure"] == "There is no topic numbers"
    assert Starting.ends == [("numbers", "failed", "There is no topic numbers")]


@pytest.mark.parametrize("error", [KeyError("offsets"), AssertionError("no reporter")])
def test_a_bug_ends_with_1_and_one_line_that_names_its_traceback(
    command: Command, error: Exception
) -> None:
    assert command.run(numbers=raises(error)) == 1

    said = command.last("numbers")["failure"]
    (trace,) = command.traces.iterdir()
    assert said.startswith(f"{type(error).__name__}: ")
    assert str(trace) in said
    assert "Traceback" not in command.err
    assert f"{type(error).__name__}: " in trace.read_text()
    assert "Traceback (most recent call last)" in trace.read_text()
    assert Starting.ends == [("numbers", "failed", said)]


def test_a_bug_outside_of_one_pipeline_ends_with_1(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_nothing(*_args: Any, **_given: Any) -> Any:
        raise TypeError("'JavaPackage' object is not callable")

    monkeypatch.setattr(build, "open_session", open_nothing)
    assert command.run(numbers=finishes) == 1

    (trace,) = command.traces.iterdir()
    assert "ottla pipeline run: TypeError: 'JavaPackage' object is not callable" in command.err
    assert str(trace) in command.err.replace("\n", "")
    assert "Traceback" not in command.err
    assert [end[1] for end in Starting.ends] == ["failed"]


def test_a_first_batch_that_is_mostly_rejected_ends_with_3(command: Command) -> None:
    def rejects(_spark: Any) -> Query:
        return RejectingQuery("numbers", "failed", "7 of 8 records of numbers do not parse")

    assert command.run(numbers=rejects) == 3
    assert command.last("numbers")["failure"] == "7 of 8 records of numbers do not parse"
    letters = Query("letters", "failed", "the disk is full")
    assert command.run(numbers=rejects, letters=lambda _: letters) == 1


def test_newest_records_that_are_mostly_rejected_end_with_3_before_spark_starts(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(pipeline: Any, _cluster: Any) -> str | None:
        if pipeline.name == "numbers":
            raise MostlyRejectedError("Of the newest records, 0 of 9 parse")
        return "of the newest records, 8 of 9 parse"

    monkeypatch.setattr(session, "check_newest", reject)
    opened = []
    spark = SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr(build, "open_session", lambda *_args, **_given: opened.append(1) or spark)

    assert command.run(numbers=finishes) == 3
    assert command.last("numbers")["failure"] == "Of the newest records, 0 of 9 parse"
    assert (opened, "Starting Spark" in command.err) == ([], False)
    assert Starting.ends == [("numbers", "failed", "Of the newest records, 0 of 9 parse")]

    # The others run.
    assert command.run(numbers=finishes, letters=lambda _: Query("letters", "finished")) == 3
    assert command.last("letters")["state"] == "finished"
    assert opened == [1]
    assert "letters: of the newest records, 8 of 9 parse." in command.err


def test_a_program_of_the_user_that_exits_has_not_run_the_pipeline(command: Command) -> None:
    """sys.exit() ends a thread silently."""
    assert command.run(numbers=raises(SystemExit(0))) == 1
    assert "SystemExit" in command.last("numbers")["failure"]


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_a_failure_of_spark_ends_with_1_and_one_line(command: Command, error: Exception) -> None:
    assert command.run(numbers=raises(error)) == 1
    said = command.last("numbers")["failure"]
    assert str(error) in said
    assert "\n" not in said
    assert "Traceback" not in command.err


def test_a_run_whose_query_fails_ends_with_1(command: Command) -> None:
    """A checkpoint whose lease another run took ends the query in this way, too."""
    assert command.run(numbers=lambda _: Query("numbers", "failed", "Another run uses it")) == 1
    assert command.last("numbers")["failure"] == "Another run uses it"


def test_a_query_that_failed_has_failed_whatever_was_reported_last(command: Command) -> None:
    """Under load the report of an end may be missing, or that of a batch may come after it."""
    assert command.run(numbers=lambda _: Query("numbers", "running", "Disk full")) == 1
    assert command.last("numbers")["failure"] == "Disk full"


def test_one_of_several_that_fails_ends_with_1_and_the_others_run_on(command: Command) -> None:
    done: list[str] = []

    def finishes_later(_spark: Any) -> Query:
        query = Query("letters", None)

        def finish() -> None:
            time.sleep(0.1)
            query.state = "finished"
            query._ended.set()
            done.append("letters")

        threading.Thread(target=finish).start()
        return query

    assert command.run(numbers=raises(ZeroDivisionError("bug")), letters=finishes_later) == 1
    assert done == ["letters"]
    assert command.last("letters")["state"] == "finished"
    assert command.last("numbers")["state"] == "failed"


def test_a_failure_while_queries_are_stopped_ends_with_1_and_stops_the_others(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Reporter) -> None:
        if self.query.name == "numbers":
            raise RuntimeError("cannot commit")

    monkeypatch.setattr(Reporter, "finish", fail)
    letters = Query("letters", "finished")
    assert command.run(numbers=finishes, letters=lambda _: letters) == 1
    assert "cannot commit" in command.last("numbers")["failure"]
    assert command.last("letters")["state"] == "finished"


def test_a_failure_while_spark_is_stopped_ends_with_1(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_spark: Any) -> None:
        raise AttributeError("_gateway")

    monkeypatch.setattr(session, "stop_spark", fail)
    assert command.run(numbers=finishes) == 1
    assert "AttributeError: _gateway" in command.err


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)], ids=["Ctrl-C", "SIGTERM"]
)
def test_a_run_that_is_stopped_by_a_signal(command: Command, number: int, code: int) -> None:
    def runs(_spark: Any) -> Query:
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
        return Query("numbers", None)

    assert command.run(numbers=runs) == code
    assert command.last("numbers")["state"] == "stopped"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)], ids=["Ctrl-C", "SIGTERM"]
)
def test_a_signal_that_also_ended_spark_is_no_failure(
    command: Command, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    """The whole process group gets a signal: py4j then loses its connection."""
    monkeypatch.setattr(session, "SIGNAL_S", 5.0)

    def dies(_spark: Any) -> Query:
        os.kill(os.getpid(), number)
        raise Py4JNetworkError("Answer from Java side is empty")

    assert command.run(numbers=dies) == code
    assert [end[1] for end in Starting.ends] == ["stopped"]


def test_a_bug_after_a_signal_is_still_a_failure(command: Command) -> None:
    def breaks(_spark: Any) -> Query:
        os.kill(os.getpid(), signal.SIGTERM)
        raise ZeroDivisionError("bug")

    assert command.run(numbers=breaks) == 1


def test_a_run_that_is_asked_to_stop_ends_with_0(command: Command) -> None:
    """`ottla pipeline stop`: the committer sees the request and stops the query."""

    def runs(_spark: Any) -> Query:
        query = Query("numbers", None)
        threading.Timer(0.05, query.stop).start()
        return query

    assert command.run(numbers=runs) == 0
    assert command.last("numbers")["state"] == "stopped"


def test_a_bug_in_the_look_at_the_lag_is_told_and_the_lag_is_unknown(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are delivered: the run has not failed. The numbers must not stand still either."""

    def fail(_self: Any, _reader: Any) -> None:
        raise LookupError("no such partition")

    monkeypatch.setattr(one_pipeline.Pipeline, "read_lag", fail)
    assert command.run(numbers=finishes) == 0
    assert "LookupError: no such partition" in command.err
    assert "Traceback" not in command.err
    assert command.last("numbers")["lag_messages"] is None
