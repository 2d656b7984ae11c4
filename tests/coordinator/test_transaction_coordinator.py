"""The transaction coordinator: requests in, answers out, restarts between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch
from ottla.transactions.record_format import decode
from ottla.transactions.requests import AddRequest, EndRequest, ListFilter
from ottla.transactions.stored import TopicPartition

OK = ErrorCode.none


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_transaction_from_its_producer_to_its_end(transactions: Any) -> None:
    coordinator = transactions.coordinator
    producer = await transactions.initialize()
    assert producer == (1_000, 0)
    await transactions.add(producer, ("a", 0), ("b", 1))
    verified = await coordinator.verify("t", producer, frozenset({TopicPartition("a", 0)}))
    assert list(verified.values()) == [OK]
    result = await coordinator.end(EndRequest("t", producer, True, 2))
    assert (result.error, result.producer) == (OK, (1_000, 1))
    (due,) = transactions.due
    assert (due.is_commit, due.producer, sorted(due.partitions)) == (
        True,
        (1_000, 1),
        [("a", 0), ("b", 1)],
    )
    await transactions.complete(due)
    described = await coordinator.describe("t")
    assert described.value.state.value == "CompleteCommit"
    listed = await coordinator.list(ListFilter(states=frozenset({"CompleteCommit"})))
    assert [transactional_id for transactional_id, _ in listed] == ["t"]


async def test_markers_wait_until_the_decision_is_committed(transactions: Any) -> None:
    producer = await transactions.initialize()
    await transactions.add(producer, ("a", 0))
    log = transactions.log_of("t")
    log.hold()
    ending = asyncio.create_task(transactions.coordinator.end(EndRequest("t", producer, True, 2)))
    await settled()
    assert not transactions.due
    assert not ending.done()
    log.release()
    assert (await ending).error is OK
    assert len(transactions.due) == 1


async def test_the_next_coordinator_writes_the_markers(transactions: Any) -> None:
    producer = await transactions.initialize()
    await transactions.add(producer, ("a", 0))
    await transactions.coordinator.end(EndRequest("t", producer, False, 0))
    before = list(transactions.due)
    transactions.due.clear()
    coordinator = transactions.restart()
    index = coordinator.partition_for("t")
    assert coordinator.epoch(index) is None
    transactions.runtime.elected(index)
    await settled()
    assert transactions.due == before
    assert coordinator.epoch(index) == 7
    await transactions.complete(before[0])
    assert (await coordinator.describe("t")).value.state.value == "CompleteAbort"


async def test_what_is_prepared_and_not_committed_waits_for_the_next_coordinator(
    transactions: Any,
) -> None:
    producer = await transactions.initialize()
    await transactions.add(producer, ("a", 0))
    log = transactions.log_of("t")
    log.hold()
    ending = asyncio.create_task(transactions.coordinator.end(EndRequest("t", producer, True, 2)))
    await settled()
    log.lost = True
    log.moved.set()
    with pytest.raises(ApiError) as refused:
        await ending
    assert refused.value.code is ErrorCode.not_coordinator
    assert not transactions.due


async def test_the_scan_asks_again_for_markers_whose_request_was_lost(transactions: Any) -> None:
    producer = await transactions.initialize()
    await transactions.add(producer, ("a", 0))
    await transactions.coordinator.end(EndRequest("t", producer, True, 2))
    before = list(transactions.due)
    await transactions.coordinator.abort_timed_out()
    assert transactions.due == before * 2
    await transactions.complete(before[0])
    await transactions.coordinator.abort_timed_out()
    assert transactions.due == before * 2


async def test_a_timed_out_transaction_is_aborted(transactions: Any) -> None:
    producer = await transactions.initialize()
    await transactions.add(producer, ("a", 0))
    transactions.clock.time_ms += 60_001
    await transactions.coordinator.abort_timed_out()
    (due,) = transactions.due
    assert (due.is_commit, due.producer) == (False, (1_000, 1))


async def exhaust(transactions: Any) -> ProducerEpoch:
    """The producer gets the last epoch of its id, and a transaction that is open."""
    producer: ProducerEpoch = await transactions.initialize()
    shard = await transactions.runtime.decide(
        transactions.coordinator.partition_for("t"), lambda shard, step: shard
    )
    shard.transactions["t"] = shard.transactions["t"]._replace(epoch=32766)
    producer = ProducerEpoch(producer.producer_id, 32766)
    await transactions.add(producer, ("a", 0))
    return producer


async def test_a_new_producer_id_where_the_epochs_are_used_up(transactions: Any) -> None:
    producer = await exhaust(transactions)
    result = await transactions.coordinator.end(EndRequest("t", producer, True, 2))
    assert result.producer == (1_001, 0)
    await transactions.complete(transactions.due[0])
    again = await transactions.coordinator.end(EndRequest("t", producer, True, 2))
    assert again.producer == (1_001, 0)


async def test_the_scan_takes_the_producer_ids_that_it_needs(transactions: Any) -> None:
    await exhaust(transactions)
    transactions.clock.time_ms += 60_001
    transactions.next_producer_id = -1
    await transactions.coordinator.abort_timed_out()
    assert not transactions.due
    transactions.next_producer_id = 5_000
    await transactions.coordinator.abort_timed_out()
    (due,) = transactions.due
    assert due.producer == (1_000, 32767)
    await transactions.complete(due)
    assert (await transactions.coordinator.describe("t")).value.producer == (5_000, 0)


async def test_without_producer_ids_the_client_asks_again(transactions: Any) -> None:
    transactions.next_producer_id = -1
    with pytest.raises(ApiError) as refused:
        await transactions.coordinator.initialize("t", 1_000, None)
    assert refused.value.code is ErrorCode.coordinator_load_in_progress
    assert (await transactions.coordinator.describe("t")).value is None


async def test_a_refused_append_changes_nothing(transactions: Any) -> None:
    producer = await transactions.initialize()
    await transactions.add(producer, ("a", 0))
    log = transactions.log_of("t")
    log.refuse = ErrorCode.not_enough_replicas
    with pytest.raises(ApiError) as refused:
        await transactions.coordinator.end(EndRequest("t", producer, True, 2))
    assert refused.value.code is ErrorCode.coordinator_not_available
    assert not transactions.due
    log.refuse = None
    result = await transactions.coordinator.end(EndRequest("t", producer, True, 2))
    assert result.producer == (1_000, 1)


async def test_expired_ids_are_removed(transactions: Any) -> None:
    await transactions.initialize()
    transactions.clock.time_ms += transactions.settings.id_expiration_ms
    await transactions.coordinator.remove_expired()
    assert (await transactions.coordinator.describe("t")).value is None
    assert transactions.log_of("t").records[-1].value is None


@pytest.mark.parametrize("transactional_id", ["", "x" * 40_000])
async def test_ids_that_no_record_can_hold(transactions: Any, transactional_id: str) -> None:
    with pytest.raises(ApiError) as refused:
        await transactions.coordinator.initialize(transactional_id, 1_000, None)
    assert refused.value.code is ErrorCode.invalid_request


@pytest.mark.parametrize(("version", "format_version"), [(0, 0), (1, 1), (2, 1)])
async def test_records_follow_the_transaction_version(
    transactions: Any, version: int, format_version: int
) -> None:
    transactions.cluster_version = version
    await transactions.initialize()
    (record,) = transactions.log_of("t").records
    assert record.value[:2] == format_version.to_bytes(2, "big")
    found = decode(record.key, record.value)
    assert found is not None
    assert found.transactional_id == "t"


async def test_partitions_are_added_to_an_unknown_id(transactions: Any) -> None:
    request = AddRequest("t", ProducerEpoch(1, 0), frozenset({TopicPartition("a", 0)}), 0)
    error = await transactions.coordinator.add(request)
    assert error is ErrorCode.invalid_producer_id_mapping


async def test_the_scans_run(transactions: Any) -> None:
    transactions.close()
    transactions.settings = type(transactions.settings)(
        abort_interval_ms=1, remove_expired_interval_ms=1, id_expiration_ms=60_000
    )
    transactions.coordinator = transactions.start()
    transactions.coordinator.start()
    producer = await transactions.initialize()
    await transactions.add(producer, ("a", 0))
    transactions.clock.time_ms += 60_001
    while not transactions.due:
        await asyncio.sleep(0)
    await transactions.complete(transactions.due[0])
    transactions.clock.time_ms += 60_001
    while (await transactions.coordinator.describe("t")).value is not None:
        await asyncio.sleep(0)
