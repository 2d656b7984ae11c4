"""Requests about transactions: which broker gets them, and what becomes of errors."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli import supported_versions, transaction_client
from ottla.cli.cluster_client import NoAnswer
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.plain_security import Security
from ottla.cli.supported_versions import API_VERSIONS
from ottla.cli.transaction_client import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    WRITE_TXN_MARKERS,
    DescribedTransaction,
    ListedTransaction,
    OpenProducer,
    TransactionClient,
)
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of

NONE = ErrorCode.none
WRITTEN = OpenProducer("t", 0, 7, 3, -1, 12, 5_000)


class Brokers:
    """Two brokers; `answers` has, by request type, what each call gets in turn: (address, request)
    to response. The last one stays.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[int, list[Callable[[str, Any], Any]]] = {}
        self.asked: list[tuple[str, Any]] = []
        monkeypatch.setattr(supported_versions, "ask", self.ask)
        monkeypatch.setattr(transaction_client, "RETRY_PAUSE_S", 0)

    def ask(self, address: str, request: Any, *, security: Security) -> Any:
        assert security.tls is None
        self.asked.append((address, request))
        answers = self.answers[request.__api_key__]
        return (answers.pop(0) if len(answers) > 1 else answers[0])(address, request)

    def client(self) -> TransactionClient:
        def partition(leader: int) -> Any:
            return SimpleNamespace(leader=leader)

        topic = SimpleNamespace(partitions={0: partition(1), 1: partition(2), 2: partition(-1)})
        metadata = SimpleNamespace(
            brokers={n: SimpleNamespace(host=f"b{n}", port=9092) for n in (1, 2)},
            topics={"t": topic},
        )
        connection: Any = SimpleNamespace(bootstrap="any:1", settings={}, metadata=lambda: metadata)
        return TransactionClient(connection)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    return Brokers(monkeypatch)


def listed(code: ErrorCode = NONE) -> Callable[[str, Any], Any]:
    def answer(address: str, request: Any) -> Any:
        build = messages_of(LIST_TRANSACTIONS, request.__version__)
        state = build.TransactionState(
            transactional_id=f"of-{address}", producer_id=4, transaction_state="Empty"
        )
        return build.ListTransactionsResponse(error_code=code, transaction_states=(state,))

    return answer


def coordinators(code: ErrorCode = NONE) -> Callable[[str, Any], Any]:
    def answer(address: str, request: Any) -> Any:
        assert address == "any:1"
        build = messages_of(FIND_COORDINATOR, request.__version__)
        found = tuple(
            build.Coordinator(key=key, node_id=2, host="b2", port=9092, error_code=code)
            for key in request.coordinator_keys
        )
        return build.FindCoordinatorResponse(coordinators=found)

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


def silent(address: str, request: Any) -> Any:
    raise NoAnswer(f"{address} closed the connection.")


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


def test_every_broker_lists_its_own(brokers: Brokers) -> None:
    brokers.answers[LIST_TRANSACTIONS] = [listed()]
    assert brokers.client().listed() == [
        ListedTransaction("of-b1:9092", 1, "Empty", 4),
        ListedTransaction("of-b2:9092", 2, "Empty", 4),
    ]
    assert [address for address, _ in brokers.asked] == ["b1:9092", "b2:9092"]


@pytest.mark.parametrize(
    ("filters", "version"), [({}, 0), ({"duration_ms": 0}, 1), ({"pattern": "a.*"}, 2)]
)
def test_the_oldest_version_that_has_the_filter(
    brokers: Brokers, filters: dict[str, Any], version: int
) -> None:
    brokers.answers[LIST_TRANSACTIONS] = [listed()]
    brokers.client().listed(**filters)
    assert {request.__version__ for _, request in brokers.asked} == {version}


def test_a_broker_without_the_version(brokers: Brokers) -> None:
    build = messages_of(API_VERSIONS, 0)
    known = build.ApiVersion(api_key=LIST_TRANSACTIONS, min_version=0, max_version=1)
    brokers.answers[LIST_TRANSACTIONS] = [silent]
    brokers.answers[API_VERSIONS] = [
        lambda *_: build.ApiVersionsResponse(error_code=NONE, api_keys=(known,))
    ]
    with pytest.raises(Failed, match="does not support ListTransactions in version 2") as failed:
        brokers.client().listed(pattern="a")
    assert failed.value.hint == "Apache Kafka 4.1 and later do."
    with pytest.raises(NoAnswer):
        brokers.client().listed()


def test_refusals_of_list(brokers: Brokers) -> None:
    brokers.answers[LIST_TRANSACTIONS] = [listed(ErrorCode.invalid_regular_expression)]
    with pytest.raises(UsageFailed, match="--id-pattern: '\\(' is not a regular expression"):
        brokers.client().listed(pattern="(")
    brokers.answers[LIST_TRANSACTIONS] = [listed(ErrorCode.coordinator_load_in_progress)]
    with pytest.raises(Failed, match="cannot list the transactions of broker 1: coordinator load"):
        brokers.client().listed()


def test_the_coordinator_describes(brokers: Brokers) -> None:
    loading = ErrorCode.coordinator_load_in_progress
    brokers.answers[FIND_COORDINATOR] = [
        coordinators(ErrorCode.coordinator_not_available),
        coordinators(),
    ]
    brokers.answers[DESCRIBE_TRANSACTIONS] = [described(loading), described()]
    assert brokers.client().described(["x", "x"]) == {
        "x": DescribedTransaction("x", 2, "Ongoing", 7, 3, 60_000, 1_000, (("t", 0), ("t", 1)))
    }


def test_an_unknown_id_is_left_out(brokers: Brokers) -> None:
    brokers.answers[FIND_COORDINATOR] = [coordinators()]
    brokers.answers[DESCRIBE_TRANSACTIONS] = [described(ErrorCode.transactional_id_not_found)]
    assert brokers.client().described(["x"]) == {}
    assert brokers.client().described([]) == {}
    brokers.answers[DESCRIBE_TRANSACTIONS] = [described(ErrorCode.not_enough_replicas)]
    with pytest.raises(Failed, match="cannot describe 'x': not enough replicas"):
        brokers.client().described(["x"])


def test_leaders_know_the_open_producers(brokers: Brokers) -> None:
    brokers.answers[DESCRIBE_PRODUCERS] = [producers(), silent]
    brokers.answers[API_VERSIONS] = [silent]
    client = brokers.client()
    found, why = client.open_producers(client.partitions())
    assert found == [WRITTEN]
    assert why == {("t", 1): "b2:9092 closed the connection", ("t", 2): "it has no leader"}
    assert [address for address, _ in brokers.asked][:2] == ["b1:9092", "b2:9092"]
    brokers.answers[DESCRIBE_PRODUCERS] = [producers(ErrorCode.not_leader_or_follower)]
    assert client.open_producers([("t", 0)]) == ([], {("t", 0): "not leader or follower"})


def test_fencing_waits_for_the_abort(brokers: Brokers) -> None:
    brokers.answers[FIND_COORDINATOR] = [coordinators()]
    busy = [ErrorCode.concurrent_transactions, ErrorCode.not_coordinator]
    brokers.answers[INIT_PRODUCER_ID] = [initialized(code) for code in (*busy, NONE)]
    brokers.client().fence("x", 60_000)
    sent = [request for _, request in brokers.asked if request.__api_key__ == INIT_PRODUCER_ID]
    assert len(sent) == 3


def test_fencing_that_is_refused(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers.answers[FIND_COORDINATOR] = [coordinators()]
    brokers.answers[INIT_PRODUCER_ID] = [initialized(ErrorCode.invalid_transaction_timeout)]
    with pytest.raises(Failed, match="fence the producer of 'x': invalid transaction timeout"):
        brokers.client().fence("x", 1)
    monkeypatch.setattr(transaction_client, "RETRY_FOR_S", 0)
    brokers.answers[INIT_PRODUCER_ID] = [initialized(ErrorCode.concurrent_transactions)]
    with pytest.raises(Failed, match="is not aborted after"):
        brokers.client().fence("x", 60_000)


def test_a_marker_goes_to_the_leader(brokers: Brokers) -> None:
    brokers.answers[WRITE_TXN_MARKERS] = [marked(NONE), marked(ErrorCode.invalid_producer_epoch)]
    brokers.client().abort_in_partition(WRITTEN)
    with pytest.raises(Failed, match="cannot abort the transaction: invalid producer epoch"):
        brokers.client().abort_in_partition(WRITTEN)
