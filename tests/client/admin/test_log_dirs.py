"""Every broker is asked what it stores, in a version that it knows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, silent

from ottla.client.admin.log_dirs import DESCRIBE_LOG_DIRS, StoredReplica, log_dirs
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of


def stored(code: ErrorCode = ErrorCode.none, *, is_empty: bool = False) -> Any:
    def answer(address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_LOG_DIRS, request.__version__)
        partition = build.DescribeLogDirsPartition(
            partition_index=3, partition_size=70, offset_lag=0, is_future_key=False
        )
        result = build.DescribeLogDirsResult(
            error_code=ErrorCode.none,
            log_dir="/d",
            topics=(build.DescribeLogDirsTopic(name="t", partitions=(partition,)),),
            total_bytes=1000,
            usable_bytes=-1,
        )
        results = () if is_empty else (result,)
        return build.DescribeLogDirsResponse(error_code=code, results=results)

    return answer


@pytest.fixture
def brokers() -> FakeCluster:
    """b2 is an Apache Kafka before 2.6."""
    made = FakeCluster({DESCRIBE_LOG_DIRS: [stored()]})
    made.versions["b2:9092"] = {DESCRIBE_LOG_DIRS: (0, 2)}
    return made


def test_every_broker_is_asked_in_a_version_that_it_knows(brokers: FakeCluster) -> None:
    (new, old), why = log_dirs(brokers.client())
    assert brokers.asked_of(DESCRIBE_LOG_DIRS) == ["b1:9092", "b2:9092"]
    assert [each.__version__ for each in brokers.requests(DESCRIBE_LOG_DIRS)] == [4, 2]
    assert why == {}
    assert (new.broker, new.path, new.error, new.size_bytes) == (1, "/d", None, 70)
    assert new.replicas == (StoredReplica("t", 3, 70, 0, False),)
    assert (new.total_bytes, new.usable_bytes) == (1000, None)
    assert (old.total_bytes, old.usable_bytes) == (None, None)


def test_only_the_chosen_brokers_and_partitions_are_asked(brokers: FakeCluster) -> None:
    log_dirs(brokers.client(), brokers=[1], partitions={"t": [3, 4]})
    (request,) = brokers.requests(DESCRIBE_LOG_DIRS)
    ((topic),) = request.topics
    assert (topic.topic, topic.partitions) == ("t", (3, 4))


def test_a_broker_that_does_not_answer_is_left_out_with_the_reason(brokers: FakeCluster) -> None:
    brokers.answers[DESCRIBE_LOG_DIRS] = [stored(), silent]
    found, why = log_dirs(brokers.client())
    assert [each.broker for each in found] == [1]
    assert why == {2: "no response from b2:9092"}


def test_no_permission_is_an_error(brokers: FakeCluster) -> None:
    brokers.answers[DESCRIBE_LOG_DIRS] = [stored(ErrorCode.cluster_authorization_failed)]
    _, why = log_dirs(brokers.client(), brokers=[1])
    assert why == {1: "cannot read the log folders of broker 1: cluster authorization failed"}
    # An old broker says it with an empty answer.
    brokers.answers[DESCRIBE_LOG_DIRS] = [stored(is_empty=True)]
    _, why = log_dirs(brokers.client(), brokers=[2])
    assert "cluster authorization failed" in why[2]
