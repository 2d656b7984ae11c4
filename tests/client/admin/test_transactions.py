"""Requests about transactions: which broker gets them, and what becomes of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, closing, coordinators

from ottla.client.admin.transactions import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    WRITE_TXN_MARKERS,
    DescribedTransaction,
    ListedTransaction,
    OpenProducer,
    Transactions,
)
from ottla.client.coordinators import FIND_COORDINATOR
from ottla.client.errors import RefusedError, UnsupportedError
from ottla.client.topic_partition import TopicPartition
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

NONE = ErrorCode.none
WRITTEN = OpenProducer("t", 0, 7, 3, -1, 12, 5_000)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def brokers() -> FakeCluster:
    return FakeCluster()


def transactions(brokers: FakeCluster) -> Transactions:
    return Transactions(brokers.client())


def listed(code: ErrorCode = NONE) -> Callable[[str, Any], Any]:
    def answer(address: str, request: Any) -> Any:
        build = messages_of(LIST_TRANSACTIONS, request.__version__)
        state = build.TransactionState(
            transactional_id=f"of-{address}", producer_id=4, transaction_state="Empty"
        )
        return build.ListTransactionsResponse(error_code=code, transaction_states=(state,))

    return answer


def described(code: ErrorCode = NONE) -> Callable[[str, Any], Any]:
    def answer(address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_TRANSACTIONS, 0)
        (name,) = request.transactional_ids
        state = build.TransactionState(
            error_code=code,
            transactional_id=name,
            transaction_state="Ongoing",
            transaction_timeout=60_000,
            transaction_start_time=1_000,
            producer_id=7,
            producer_epoch=3,
            topics=(build.TopicData(topic="t", partitions=(0, 1)),),
        )
        return build.DescribeTransactionsResponse(transaction_states=(state,))

    return answer


def producers(code: ErrorCode = NONE) -> Callable[[str, Any], Any]:
    def answer(address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_PRODUCERS, 0)
        (topic,) = request.topics
        (index,) = topic.partition_indexes
        states = tuple(
            build.ProducerState(
                producer_id=producer_id,
                producer_epoch=3,
                last_timestamp=5_000,
                coordinator_epoch=-1,
                current_txn_start_offset=first_offset,
            )
            for producer_id, first_offset in ((7, 12), (8, -1))
        )
        each = build.PartitionResponse(
            partition_index=index, error_code=code, active_producers=states
        )
        return build.DescribeProducersResponse(
            topics=(build.TopicResponse(name=topic.name, partitions=(each,)),)
        )

    return answer


def initialized(code: ErrorCode) -> Callable[[str, Any], Any]:
    def answer(address: str, request: Any) -> Any:
        assert (address, request.transactional_id) == ("b2:9092", "x")
        assert (request.producer_id, request.producer_epoch) == (-1, -1)
        build = messages_of(INIT_PRODUCER_ID, request.__version__)
        return build.InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=5)

    return answer


def marked(code: ErrorCode) -> Callable[[str, Any], Any]:
    def answer(address: str, request: Any) -> Any:
        assert address == "b1:9092"
        (marker,) = request.markers
        assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 3, 0)
        assert not marker.transaction_result
        build = messages_of(WRITE_TXN_MARKERS, request.__version__)
        each = build.WritableTxnMarkerPartitionResult(partition_index=0, error_code=code)
        topic = build.WritableTxnMarkerTopicResult(name="t", partitions=(each,))
        result = build.WritableTxnMarkerResult(producer_id=7, topics=(topic,))
        return build.WriteTxnMarkersResponse(markers=(result,))

    return answer


def test_topics_and_partitions(brokers: FakeCluster) -> None:
    found = transactions(brokers)
    assert found.topics == ["t"]
    assert found.partitions() == found.partitions("t") == [T0, T1, ("t", 2)]
    assert found.partitions("u") == []


def test_every_broker_lists_its_own(brokers: FakeCluster) -> None:
    brokers.answers[LIST_TRANSACTIONS] = [listed()]
    assert transactions(brokers).listed() == [
        ListedTransaction("of-b1:9092", 1, "Empty", 4),
        ListedTransaction("of-b2:9092", 2, "Empty", 4),
    ]
    assert brokers.asked_of(LIST_TRANSACTIONS) == ["b1:9092", "b2:9092"]


@pytest.mark.parametrize(
    ("filters", "since"), [({"duration_ms": 0}, "3.8"), ({"pattern": "a.*"}, "4.1")]
)
def test_a_broker_that_does_not_know_the_filter(
    brokers: FakeCluster, filters: dict[str, Any], since: str
) -> None:
    brokers.answers[LIST_TRANSACTIONS] = [listed()]
    brokers.versions["b2:9092"] = {LIST_TRANSACTIONS: (0, 0)}
    assert len(transactions(brokers).listed()) == 2
    with pytest.raises(UnsupportedError, match="b2:9092 does not support ListTransactions in ver"):
        transactions(brokers).listed(**filters)
    brokers.versions.clear()
    assert len(transactions(brokers).listed(**filters)) == 2
    brokers.versions["b1:9092"] = {LIST_TRANSACTIONS: (0, 0)}
    with pytest.raises(UnsupportedError) as raised:
        transactions(brokers).listed(**filters)
    assert raised.value.hint == f"Apache Kafka {since} and later do."


def test_refusals_of_list(brokers: FakeCluster) -> None:
    brokers.answers[LIST_TRANSACTIONS] = [listed(ErrorCode.invalid_regular_expression)]
    with pytest.raises(RefusedError) as raised:
        transactions(brokers).listed(pattern="(")
    assert raised.value.code is ErrorCode.invalid_regular_expression
    brokers.answers[LIST_TRANSACTIONS] = [listed(ErrorCode.coordinator_load_in_progress)]
    with pytest.raises(RefusedError, match="list the transactions of broker 1: coordinator load"):
        transactions(brokers).listed()


def test_the_coordinator_describes(brokers: FakeCluster) -> None:
    loading = ErrorCode.coordinator_load_in_progress
    brokers.answers[FIND_COORDINATOR] = [
        coordinators(ErrorCode.coordinator_not_available),
        coordinators(),
    ]
    brokers.answers[DESCRIBE_TRANSACTIONS] = [described(loading), described()]
    assert transactions(brokers).described(["x", "x"]) == {
        "x": DescribedTransaction("x", 2, "Ongoing", 7, 3, 60_000, 1_000, (T0, T1))
    }


def test_an_unknown_id_is_left_out(brokers: FakeCluster) -> None:
    brokers.answers[DESCRIBE_TRANSACTIONS] = [described(ErrorCode.transactional_id_not_found)]
    assert transactions(brokers).described(["x"]) == {}
    assert transactions(brokers).described([]) == {}
    brokers.answers[DESCRIBE_TRANSACTIONS] = [described(ErrorCode.not_enough_replicas)]
    with pytest.raises(RefusedError, match="cannot describe 'x': not enough replicas"):
        transactions(brokers).described(["x"])


def test_leaders_know_the_open_producers(brokers: FakeCluster) -> None:
    brokers.answers[DESCRIBE_PRODUCERS] = [producers(), closing]
    found = transactions(brokers)
    assert found.open_producers(found.partitions()) == (
        [WRITTEN],
        {T1: "the broker at b2:9092 closed the connection", ("t", 2): "it has no leader"},
    )
    assert brokers.asked_of(DESCRIBE_PRODUCERS) == ["b1:9092", "b2:9092"]
    brokers.answers[DESCRIBE_PRODUCERS] = [producers(ErrorCode.not_leader_or_follower)]
    assert found.open_producers([("t", 0)]) == ([], {T0: "not leader or follower"})


def test_fencing_waits_for_the_abort(brokers: FakeCluster) -> None:
    busy = [ErrorCode.concurrent_transactions, ErrorCode.not_coordinator]
    brokers.answers[INIT_PRODUCER_ID] = [initialized(code) for code in (*busy, NONE)]
    transactions(brokers).fence("x", 60_000)
    assert len(brokers.requests(INIT_PRODUCER_ID)) == 3


@pytest.mark.parametrize(
    "code", [ErrorCode.invalid_transaction_timeout, ErrorCode.concurrent_transactions]
)
def test_fencing_that_is_refused(brokers: FakeCluster, code: ErrorCode) -> None:
    brokers.answers[INIT_PRODUCER_ID] = [initialized(code)]
    with pytest.raises(RefusedError, match="fence the producer of 'x'") as raised:
        transactions(brokers).fence("x", 1)
    assert raised.value.code is code


def test_a_marker_goes_to_the_leader(brokers: FakeCluster) -> None:
    brokers.answers[WRITE_TXN_MARKERS] = [marked(NONE), marked(ErrorCode.invalid_producer_epoch)]
    transactions(brokers).abort_in_partition(WRITTEN)
    with pytest.raises(RefusedError, match="cannot abort the transaction: invalid producer epoch"):
        transactions(brokers).abort_in_partition(WRITTEN)
