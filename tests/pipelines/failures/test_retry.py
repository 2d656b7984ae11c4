"""What passes by itself, and how long it is waited for."""

import pytest

from ottla.pipelines.failures.cause import Cause
from ottla.pipelines.failures.known import Wait
from ottla.pipelines.failures.retry import Retries, RetryLimits
from ottla.pipelines.failures.sentences import passes_by_itself
from ottla.pipelines.failures.table import (
    BROKER,
    COMMIT,
    CONSTRAINT,
    SCHEMA,
    STORAGE,
    TOPIC,
)
from ottla.pipelines.sinks.postgresql.failures import CHARACTER, DATABASE
from ottla.pipelines.sinks.registered import SINKS
from ottla.pipelines.sinks.topic.failures import WRITE

OF_SINKS = tuple(known for kind in SINKS for known in kind.failures)

KAFKA = "org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("kind", "message", "passes"),
    [
        ("o.a.s.SparkRuntimeException", "[X] OTTLA_UNKNOWN_SCHEMA_ID: value has 7", SCHEMA),
        (KAFKA + "TimeoutException", "Timed out waiting for a node assignment.", BROKER),
        (KAFKA + "NotLeaderOrFollowerException", "", BROKER),
        (KAFKA + "UnknownTopicOrPartitionException", "", TOPIC),
        (KAFKA + "TopicAuthorizationException", "", None),
        (KAFKA + "SaslAuthenticationException", "", None),
        ("java.util.concurrent.TimeoutException", "Cannot fetch record for offset 7", BROKER),
        ("java.util.concurrent.TimeoutException", "Futures timed out", None),
        ("cimpl.KafkaException", "KafkaError{code=_TRANSPORT,val=-195}", BROKER),
        ("cimpl.KafkaException", "KafkaError{code=UNKNOWN_TOPIC_OR_PART,val=3}", TOPIC),
        ("cimpl.KafkaException", "KafkaError{code=TOPIC_AUTHORIZATION_FAILED}", None),
        ("io.delta.exceptions.MetadataChangedException", "", COMMIT),
        ("io.delta.exceptions.ProtocolChangedException", "", COMMIT),
        ("io.delta.exceptions.ConcurrentTransactionException", "", None),
        ("java.net.SocketTimeoutException", "Read timed out", STORAGE),
        ("org.apache.hadoop.fs.s3a.AWSServiceThrottledException", "", STORAGE),
        ("software.amazon.awssdk.services.s3.model.S3Exception", "(Status Code: 503)", STORAGE),
        ("software.amazon.awssdk.services.s3.model.S3Exception", "(Status Code: 403)", None),
        ("org.apache.hadoop.ipc.RemoteException", "Name node is in safe mode.", STORAGE),
        ("java.nio.file.AccessDeniedException", "Read timed out", None),
        ("java.net.UnknownHostException", "Unable to execute HTTP request", None),
        ("java.io.IOException", "No space left on device", None),
        ("java.lang.OutOfMemoryError", "Java heap space", None),
        ("ValueError", "no sevens here", None),
        ("x.PythonException", "cimpl...\ntopic_task.NotWrittenError: out: _TRANSPORT", WRITE),
        ("x.PythonException", "cimpl...\ntopic_task.RefusedError: out: POLICY", None),
    ],
)
def test_only_what_passes_by_itself_is_retried(
    kind: str, message: str, passes: Wait | None
) -> None:
    wrapped = [Cause("org.apache.spark.SparkException", "Job aborted"), Cause(kind, message)]

    assert passes_by_itself(wrapped, OF_SINKS) == passes


@pytest.mark.parametrize(
    ("state", "passes"),
    [
        ("08006", DATABASE),
        ("57P03", DATABASE),
        ("40P01", DATABASE),
        ("28P01", None),
        ("23514", None),
    ],
)
def test_a_database_that_is_away_is_waited_for(state: str, passes: Wait | None) -> None:
    causes = [Cause("org.postgresql.util.PSQLException", "why", f"SQLSTATE {state}")]

    assert passes_by_itself([*causes, Cause("java.io.EOFException")], OF_SINKS) == passes


@pytest.mark.parametrize(
    ("condition", "passes"),
    [
        ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", CONSTRAINT),
        ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", CONSTRAINT),
        ("SQLSTATE 23502", CONSTRAINT),
        ("SQLSTATE 22001", CONSTRAINT),
        ("SQLSTATE 22021", CHARACTER),
        ("SQLSTATE 23503", None),
    ],
)
def test_a_constraint_may_be_newer_than_the_plan(condition: str, passes: Wait | None) -> None:
    found = passes_by_itself([Cause("E"), Cause("E", "a row", condition)], OF_SINKS)
    assert found == passes
    assert found is None or found.rejects_rows


def test_the_wait_doubles_and_both_limits_hold() -> None:
    retries = Retries(RetryLimits(max_tries=6, max_elapsed_s=1_000, max_wait_s=8))

    assert [retries.next_wait(BROKER, 100.0 + n) for n in range(7)] == [1, 2, 4, 8, 8, 8, None]

    retries = Retries(RetryLimits(max_tries=100, max_elapsed_s=10))
    assert retries.next_wait(BROKER, 100.0) == 1
    assert retries.next_wait(BROKER, 109.0) == 1  # no longer than the limit
    assert retries.next_wait(BROKER, 110.0) is None
    assert retries.elapsed(110.0) == 10


def test_a_topic_that_is_gone_has_fewer_tries() -> None:
    retries = Retries()

    assert [retries.next_wait(TOPIC, 0.0) for _ in range(4)] == [1, 2, 4, None]


def test_a_finished_batch_starts_the_count_over() -> None:
    retries = Retries(RetryLimits(max_tries=1))
    assert retries.next_wait(BROKER, 0.0) == 1
    retries.progressed()

    assert retries.elapsed(5_000.0) == 0
    assert retries.next_wait(BROKER, 5_000.0) == 1
    assert retries.next_wait(BROKER, 5_001.0) is None


def test_a_schema_that_stays_unknown_is_given_up_soon() -> None:
    retries = Retries(RetryLimits(max_schema_tries=2))

    assert [retries.next_wait(SCHEMA, now) for now in (0.0, 1.0, 3.0)] == [1.0, 2.0, None]
