"""A broker that goes away: a line in the log soon, and an end to the wait."""

import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError
from tests.pipelines.environment import serve

from ottla.pipelines import PipelineError, to_delta, topic
from ottla.pipelines.failures.cause import Cause
from ottla.pipelines.failures.known import About
from ottla.pipelines.failures.retry import RetryLimits
from ottla.pipelines.failures.table import BROKER
from ottla.pipelines.kafka import brokers
from ottla.pipelines.run import supervisor
from ottla.pipelines.run.guard import BatchGuard
from ottla.pipelines.run.query import PipelineQuery
from ottla.pipelines.run.supervisor import Failure, Supervisor
from ottla.pipelines.sinks.delta.failures import FAILURES

WITHIN_S = 120.0


def produce(address: str, start: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address})
    for number in range(start, start + 10):
        producer.produce("rows", json.dumps({"id": number}))
    assert producer.flush(30) == 0


def make_topic(address: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("rows", 2, 1)])["rows"].result(timeout=30)


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.1)


@pytest.fixture
def supervised(monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    """The supervisor of a query that failed before its batch was written; nothing runs."""
    made = Supervisor(
        start=lambda: None,
        guard=BatchGuard(lambda frame, number: None),
        about=About(query="flights", failures=FAILURES),
        probe=lambda: None,
        finish=lambda: None,
    )
    made.current = SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr(made, "_wait", lambda: Failure([Cause("E", "a bad row")], "trace"))
    monkeypatch.setattr(supervisor, "process_ended", lambda **_: None)
    return made


def test_a_query_that_must_not_go_on_fails_and_writes_nothing_more(
    supervised: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished: list[None] = []
    supervised.finish = lambda: finished.append(None)
    monkeypatch.setattr(supervised, "_wait", lambda: None)  # Spark's query was stopped
    supervised.current = SimpleNamespace(stop=supervised._run)
    supervised.fail("another run has the checkpoint")
    assert supervised.ended.is_set()
    assert str(supervised.error) == "another run has the checkpoint"
    assert finished == []


def test_a_query_that_ends_by_itself_is_checked_once_more(
    supervised: Supervisor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def check() -> None:
        raise PipelineError("the topic is another one")

    supervised.check_ended = check
    monkeypatch.setattr(supervised, "_wait", lambda: None)
    supervised._run()
    assert str(supervised.error) == "the topic is another one"
    assert "the topic is another one" in caplog.text, "nobody waits for the query"

    supervised.error = None
    supervised.stop()
    supervised._run()
    assert supervised.error is None


def test_a_query_that_was_to_end_a_batch_alone_goes_on(
    supervised: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[None] = []
    monkeypatch.setattr(supervisor, "keep_off_screen", lambda query: None)
    monkeypatch.setattr(supervised, "_wait", lambda: None)
    supervised.start = lambda: started.append(None)
    supervised.goes_on = lambda: len(started) < 2
    supervised._run()
    assert (len(started), supervised.restarts, supervised.error) == (2, 2, None)

    def refused() -> None:
        raise PipelineError("the topic is gone")

    supervised.start = refused
    supervised.goes_on = lambda: True
    supervised._run()
    assert str(supervised.error) == "the topic is gone"


def test_spark_may_end_while_it_is_asked_why_a_query_failed(
    supervised: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Cause("ProcessEnded", "Spark's process ended (out of memory, exit code 52)")

    def no_answer(_: BaseException) -> list[Cause]:
        raise ConnectionRefusedError(111, "Connection refused")

    supervised.guard.error = Py4JError("the batch")
    monkeypatch.setattr(supervisor, "causes_of", no_answer)
    monkeypatch.setattr(
        supervisor, "process_ended", lambda is_silent=False: ended if is_silent else None
    )

    assert supervised._failure_of(object(), Py4JError("the query")).causes == [ended]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_of_ours_in_a_wait_is_no_success(supervised: Supervisor) -> None:
    """Spark's query is one without a way to wait for it: what asks it raises in its thread."""
    supervised.current = SimpleNamespace(_jsq=object())
    with pytest.raises(AssertionError, match="the wait for Spark ended by an error"):
        PipelineQuery(supervised).processAllAvailable()


def test_a_failure_names_its_records(
    supervised: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def ranges(*about: object) -> str:
        asked.append(about)
        return "flights partition 0, offset 7"

    monkeypatch.setattr(supervisor, "failed_ranges", ranges)
    supervised._run()

    assert str(supervised.error).startswith(
        "flights stopped: E: a bad row while it read flights partition 0, offset 7"
    )
    assert asked == [(supervised.current, None)]
    assert supervised.ended.is_set()


def test_a_failure_whose_records_another_spark_hides_is_reported_with_the_reason(
    supervised: Supervisor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def ranges(*about: object) -> str:
        raise Py4JError("Method inputRDD([]) does not exist\nat py4j")

    monkeypatch.setattr(supervisor, "failed_ranges", ranges)
    supervised._run()

    assert str(supervised.error).startswith("flights stopped: E: a bad row (")
    line = f"flights: {supervisor.NOT_FOUND}: Method inputRDD([]) does not exist at py4j"
    assert line in caplog.messages
    caplog.clear()


def test_the_records_of_a_start_that_failed_are_not_asked_for(
    supervised: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = Failure([Cause("E", "no start")], "", None, ValueError("no start"))
    monkeypatch.setattr(supervised, "_wait", lambda: failure)
    monkeypatch.setattr(supervisor, "failed_ranges", lambda *about: 1 / 0)

    supervised._run()

    assert str(supervised.error).startswith("flights stopped: ValueError: no start")


def unreadable() -> bool:
    raise PipelineError("the database is away")


@pytest.mark.parametrize(("constrain", "starts"), [(True, 1), (False, 0), (unreadable, 0)])
def test_a_query_starts_again_only_for_a_constraint_that_is_new(
    supervised: Supervisor,
    monkeypatch: pytest.MonkeyPatch,
    constrain: bool | Callable[[], bool],
    starts: int,
) -> None:
    refused = Cause("E", "a bad row", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES")
    ends = iter([Failure([refused], "trace"), None])
    begun: list[None] = []
    monkeypatch.setattr(supervised, "_wait", lambda: next(ends))
    monkeypatch.setattr(supervisor, "keep_off_screen", lambda query: None)
    monkeypatch.setattr(supervised, "_failed_ranges", lambda failure: "")
    supervised.limits = supervised._retries.limits = RetryLimits(first_wait_s=0)
    supervised.start = lambda: begun.append(None)
    supervised.constrain = constrain if callable(constrain) else lambda: constrain

    supervised._run()

    assert len(begun) == starts
    assert (supervised.error is None) == (starts == 1)


@pytest.mark.parametrize("place", ["_failed_ranges", "_start_again"])
def test_a_bug_of_the_supervisor_is_no_end_without_a_failure(
    supervised: Supervisor, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    stopped = threading.Event()
    supervised.current = SimpleNamespace(stop=stopped.set)
    monkeypatch.setattr(supervised, place, lambda failure: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        supervised._run()

    assert supervised.ended.is_set()
    if place == "_failed_ranges":
        assert str(supervised.error).startswith("flights stopped: E: a bad row")
    else:
        assert str(supervised.error).startswith("flights stopped: ZeroDivisionError: division")
        assert stopped.wait(WITHIN_S)


@pytest.mark.parametrize("during", ["probe", "start"])
def test_a_stop_during_a_restart_stops_what_it_started(
    supervised: Supervisor, monkeypatch: pytest.MonkeyPatch, during: str
) -> None:
    """Such as that of a run that has lost its checkpoint: no batch of it may be written then."""
    running: list[Any] = []

    def stop_now() -> None:
        supervised._stopping.set()
        supervised.current.stop()

    def start() -> Any:
        if during == "start":
            stop_now()
        query = SimpleNamespace()
        query.stop = lambda: running.remove(query)
        running.append(query)
        return query

    supervised.start = start
    supervised.probe = lambda: stop_now() if during == "probe" else None
    supervised.limits = supervised._retries.limits = RetryLimits(first_wait_s=0.0)
    monkeypatch.setattr(supervisor, "keep_off_screen", lambda query: None)
    failures = [Failure([Cause("E", "a server of Kafka is away")], "trace"), None]
    monkeypatch.setattr(supervised, "_wait", lambda: failures.pop(0))
    monkeypatch.setattr(supervisor, "passes_by_itself", lambda *_: BROKER)

    supervised._run()

    assert running == []
    assert supervised.ended.is_set()
    assert supervised.error is None


@pytest.mark.spark
def test_a_query_outlives_its_broker_for_a_while(
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # What is away for so long is away.
    monkeypatch.setattr(supervisor, "STILL_POLLS", 2)
    monkeypatch.setattr(brokers, "TIMEOUT_S", 2.0)
    data, table = tmp_path / "data", tmp_path / "table"
    lines: Callable[[], list[str]] = lambda: [  # noqa: E731
        record.getMessage()
        for record in caplog.records
        if record.name == "ottla.pipelines" and record.levelno >= logging.WARNING
    ]
    with serve(data) as address:
        make_topic(address)
        produce(address, 0)
        rows = topic(spark, "rows", bootstrap_servers=address, schema="id BIGINT").select("value.*")
        query: Any = to_delta(rows, table, checkpoint=tmp_path / "checkpoint")
        query.processAllAvailable()

    # The broker is away; then it is back, on the same port.
    wait_for(lambda: bool(lines()))
    assert lines()[0].startswith(f"table: No broker answers at {address}")
    assert lines()[0].endswith("Waiting for it, at most 600 s")
    assert query.isActive
    with serve(data, address):
        produce(address, 10)
        query.processAllAvailable()
        assert spark.read.format("delta").load(str(table)).count() == 20
        wait_for(lambda: lines()[-1] == f"table: {address} answers again")
        assert query.isActive

    # It stays away this time.
    query._supervisor.limits = RetryLimits(max_elapsed_s=1)
    with pytest.raises(PipelineError) as caught:
        query.awaitTermination(WITHIN_S)

    assert not query.isActive
    assert str(caught.value) == str(query.exception())
    assert str(caught.value) == (
        f"table stopped: {address} did not answer for 1 s. Start it: the next start continues "
        "from the checkpoint"
    )
    noise = [line for line in capfd.readouterr().err.splitlines() if "rdkafka" not in line]
    assert noise == []


@pytest.mark.spark
def test_a_topic_that_was_deleted_is_not_waited_for_long(
    spark: Any, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    from confluent_kafka.admin import AdminClient

    name = new_topic()
    rows = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT").select("value.*")
    query: Any = to_delta(rows, tmp_path / "table", checkpoint=tmp_path / "checkpoint")
    query._supervisor._retries.limits = RetryLimits(first_wait_s=0.1)
    query.processAllAvailable()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([name])[name].result(timeout=30)

    with pytest.raises(PipelineError) as caught:
        query.awaitTermination(WITHIN_S)

    assert str(caught.value).startswith(f"table stopped: {name} is no longer on {bootstrap}")
    assert "Gave up after 3 tries in " in str(caught.value)


@pytest.mark.spark
def test_stop_ends_the_wait_for_the_next_try(
    spark: Any, bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    from confluent_kafka.admin import AdminClient

    name = new_topic()
    rows = topic(spark, name, bootstrap_servers=bootstrap, schema="id BIGINT").select("value.*")
    query: Any = to_delta(rows, tmp_path / "table", checkpoint=tmp_path / "checkpoint")
    query._supervisor._retries.limits = RetryLimits(first_wait_s=600)
    query.processAllAvailable()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([name])[name].result(timeout=30)
    wait_for(lambda: query._supervisor._retries.tries == 1)

    assert query.isActive
    query.stop()

    assert not query.isActive
    assert query.exception() is None
    query.awaitTermination()
