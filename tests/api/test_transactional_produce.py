"""Against a coordinator that answers as the test wants; real ones are in tests/system."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of
from ottla.shards.step import ProducerEpoch
from ottla.transactions.stored import TopicPartition
from ottla.transactions.verification import Asked

KEY = 0
NONE = ErrorCode.none


class Coordinator:
    """Records the questions. `meanwhile` runs before the answer."""

    def __init__(self) -> None:
        self.questions: list[Any] = []
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.meanwhile: Callable[[], Any] = lambda: None

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        partitions: frozenset[TopicPartition],
        asked: Asked,
    ) -> dict[TopicPartition, ErrorCode]:
        self.questions.append((transactional_id, producer, partitions, asked))
        await asyncio.sleep(0)
        self.meanwhile()
        return {each: self.errors.get(each, NONE) for each in partitions}

    def close(self) -> None: ...


@pytest.fixture
def coordinator(node_call: Any, monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    made = Coordinator()
    monkeypatch.setattr(node_call.node, "transaction_verifier", made)
    return made


def batch(node_call: Any, sequence: int = 0, epoch: int = 0, producer_id: int = 7) -> bytes:
    made: bytes = node_call.batch(
        b"a",
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    return made


async def produce(node_call: Any, sequence: int = 0, epoch: int = 0, **how: Any) -> ErrorCode:
    records = batch(node_call, sequence, epoch)
    answer = await node_call.produce("t", records, **{"transactional_id": "x", **how})
    code: ErrorCode = answer.error_code
    return code


def end(node_call: Any, epoch: int = 0) -> None:
    node_call.node.partitions.get("t", 0).appends.append_marker(
        7, epoch, is_commit=True, coordinator_epoch=0, transaction_version=0
    )


@pytest.mark.parametrize(
    ("version", "asked"),
    [
        (3, Asked.VERIFIED),
        (10, Asked.VERIFIED),
        (11, Asked.VERIFIED_ABORTABLE),
        (12, Asked.ADDED),
        (13, Asked.ADDED),
    ],
)
async def test_the_first_append_of_a_transaction_asks_its_coordinator(
    node_call: Any, coordinator: Coordinator, version: int, asked: Asked
) -> None:
    for sequence in range(3):
        assert await produce(node_call, sequence, version=version) is NONE
    where = frozenset({TopicPartition("t", 0)})
    assert coordinator.questions == [("x", ProducerEpoch(7, 0), where, asked)]
    end(node_call)
    assert await produce(node_call, 3, version=version) is NONE
    assert len(coordinator.questions) == 2, "it is another transaction"


@pytest.mark.parametrize(
    ("version", "error", "expected"),
    [
        (11, ErrorCode.invalid_txn_state, ErrorCode.invalid_txn_state),
        (11, ErrorCode.not_coordinator, ErrorCode.not_enough_replicas),
        (11, ErrorCode.network_exception, ErrorCode.not_enough_replicas),
        (11, ErrorCode.concurrent_transactions, ErrorCode.not_enough_replicas),
        (12, ErrorCode.concurrent_transactions, ErrorCode.concurrent_transactions),
        (12, ErrorCode.transaction_abortable, ErrorCode.transaction_abortable),
        (12, ErrorCode.invalid_producer_epoch, ErrorCode.invalid_producer_epoch),
    ],
)
async def test_nothing_is_appended_against_the_coordinator(
    node_call: Any, coordinator: Coordinator, version: int, error: ErrorCode, expected: ErrorCode
) -> None:
    coordinator.errors[TopicPartition("t", 0)] = error
    assert await produce(node_call, version=version) is expected
    assert node_call.node.partitions.get("t", 0).log.end_offset == 0


async def test_an_answer_that_comes_after_the_marker_is_too_late(
    node_call: Any, coordinator: Coordinator
) -> None:
    """The hanging transaction of KIP-890: nobody would end it."""
    coordinator.meanwhile = lambda: end(node_call)
    assert await produce(node_call) is ErrorCode.invalid_txn_state
    partition = node_call.node.partitions.get("t", 0)
    assert partition.last_stable_offset == partition.log.end_offset == 1


async def test_trap_11_a_batch_behind_a_refused_one_is_refused_too(
    node_call: Any, coordinator: Coordinator
) -> None:
    coordinator.errors[TopicPartition("t", 0)] = ErrorCode.coordinator_load_in_progress
    assert await produce(node_call, 0, version=11) is ErrorCode.not_enough_replicas
    coordinator.errors.clear()
    out_of_order = ErrorCode.out_of_order_sequence_number
    assert await produce(node_call, 1, version=11) is out_of_order
    for sequence in (0, 1):
        assert await produce(node_call, sequence, version=11) is NONE


async def test_trap_11_version_2_begins_with_sequence_0(
    node_call: Any, coordinator: Coordinator
) -> None:
    out_of_order = ErrorCode.out_of_order_sequence_number
    assert await produce(node_call, 3, version=12) is out_of_order
    assert await produce(node_call, 3, version=11) is out_of_order, "its verification has begun"
    assert await produce(node_call, 0, version=12) is NONE


async def test_old_epochs_are_refused_without_a_question(
    node_call: Any, coordinator: Coordinator
) -> None:
    assert await produce(node_call, epoch=3) is NONE
    assert await produce(node_call, epoch=2) is ErrorCode.invalid_producer_epoch
    assert len(coordinator.questions) == 1


async def test_transactional_records_need_a_transactional_id(
    node_call: Any, coordinator: Coordinator
) -> None:
    refused = ErrorCode.transactional_id_authorization_failed
    assert await produce(node_call, transactional_id=None) is refused
    plain = await node_call.produce("t", node_call.batch(b"a"), transactional_id="x")
    assert plain.error_code is NONE, "as in Kafka"
    assert coordinator.questions == []


async def test_one_transactional_batch_without_an_id_refuses_the_request(node_call: Any) -> None:
    """As in Kafka: nothing of it is appended."""
    await node_call.create("two", 2)
    build = messages_of(KEY, 9, "request")
    data = build.TopicProduceData(
        name="two",
        partition_data=(
            build.PartitionProduceData(index=0, records=node_call.batch(b"plain")),
            build.PartitionProduceData(index=1, records=batch(node_call)),
        ),
    )
    request = build.ProduceRequest(
        transactional_id=None, acks=-1, timeout=1_000, topic_data=(data,)
    )
    (topic,) = (await node_call.ask(request)).responses
    refused = ErrorCode.transactional_id_authorization_failed
    assert [each.error_code for each in topic.partition_responses] == [refused, refused]
    assert node_call.node.partitions.get("two", 0).log.end_offset == 0


async def test_without_verification_clients_are_trusted(
    start_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_call = await start_node(transaction_partition_verification_enable="false")
    await node_call.create("t")
    coordinator = Coordinator()
    monkeypatch.setattr(node_call.node, "transaction_verifier", coordinator)
    assert await produce(node_call, version=11) is NONE
    assert coordinator.questions == []
    end(node_call)
    assert await produce(node_call, 1, version=12) is NONE
    assert len(coordinator.questions) == 1, "to add the partition"


async def _many(node_call: Any, *batches: bytes) -> list[ErrorCode]:
    build = node_call.request(KEY, 12)
    data = tuple(
        build.PartitionProduceData(index=index, records=records)
        for index, records in enumerate(batches)
    )
    topics = (build.TopicProduceData(name="three", partition_data=data),)
    answer = await node_call.ask(
        build.ProduceRequest(acks=-1, timeout=30_000, topic_data=topics, transactional_id="x")
    )
    return [each.error_code for each in answer.responses[0].partition_responses]


async def test_one_question_for_all_partitions_of_a_request(
    node_call: Any, coordinator: Coordinator
) -> None:
    await node_call.create("three", partitions=3)
    refused = TopicPartition("three", 1)
    coordinator.errors[refused] = ErrorCode.invalid_txn_state
    batches = [batch(node_call)] * 3
    expected = [NONE, ErrorCode.invalid_txn_state, NONE]
    assert await _many(node_call, *batches) == expected
    (question,) = coordinator.questions
    assert question[2] == {TopicPartition("three", index) for index in range(3)}
    coordinator.errors.clear()
    second = [batch(node_call, 1), batch(node_call), batch(node_call, 1)]
    assert await _many(node_call, *second) == [NONE] * 3
    assert coordinator.questions[1][2] == {refused}


async def test_a_request_has_one_producer(node_call: Any, coordinator: Coordinator) -> None:
    await node_call.create("three", partitions=3)
    batches = [batch(node_call), batch(node_call, producer_id=8), node_call.batch(b"plain")]
    assert await _many(node_call, *batches) == [ErrorCode.invalid_producer_id_mapping] * 3
    assert coordinator.questions == []


async def test_what_cannot_be_appended_is_not_asked_for(
    node_call: Any, coordinator: Coordinator
) -> None:
    for records, code in (
        (b"x" * 20, ErrorCode.corrupt_message),
        (batch(node_call)[:16] + b"\7" + batch(node_call)[17:], ErrorCode.corrupt_message),
        (None, ErrorCode.invalid_record),
    ):
        answer = await node_call.produce("t", records, transactional_id="x")
        assert answer.error_code is code
    answer = await node_call.produce("none", batch(node_call), transactional_id="x")
    assert answer.error_code is ErrorCode.unknown_topic_or_partition
    await node_call.node.topic_creation.ensure_offsets_topic()
    answer = await node_call.produce("__consumer_offsets", batch(node_call), transactional_id="x")
    assert answer.error_code is ErrorCode.invalid_topic_exception
    assert coordinator.questions == []
