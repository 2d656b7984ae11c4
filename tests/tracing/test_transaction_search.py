"""Transactions of a real log: the open ones, and the marker of a record's transaction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.journey.transactions import (
    CoordinatedTransaction,
    EndMarker,
    OpenTransaction,
    TransactionFacts,
)
from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.log.open_file import OpenFiles
from ottla.log.opening import open_log
from ottla.log.verification import NOT_REQUIRED
from ottla.records.build import build_batch
from ottla.records.control import ControlType, write_end_marker
from ottla.records.header import iterate_headers
from ottla.records.record import Record
from ottla.tracing.gather_facts import find_location
from ottla.tracing.key_search import EVERYTHING
from ottla.tracing.transaction_coordinators import Coordinated
from ottla.tracing.transaction_search import transaction_facts
from ottla.transactions.stored import TopicPartition


def append(log: Log, batch: bytes) -> None:
    headers = list(iterate_headers(batch))
    log.append(batch, headers, leader_epoch=0, now_ms=1000, is_own=True, guard=NOT_REQUIRED)


def data(producer_id: int, *, epoch: int = 0) -> bytes:
    records = [Record(0, 2_000 + producer_id, b"k", b"v" * 50)] * 2
    return build_batch(
        records, producer_id=producer_id, producer_epoch=epoch, is_transactional=True
    )


def marker(producer_id: int, kind: ControlType, *, epoch: int = 0) -> bytes:
    return write_end_marker(kind, producer_id, epoch, 0, 3_000)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Offsets 0-1 committed by 4, 3-4 aborted by 6, 8-9 open, and 10-11 outside transactions."""
    config = LogConfig(segment_bytes=300)
    log = open_log(str(tmp_path / "t-0"), config, OpenFiles(8), now_ms=1000)
    append(log, data(7))
    append(log, build_batch([Record(0, 2_000, b"k", b"v")]))
    append(log, data(8))
    append(log, marker(8, ControlType.abort))
    append(log, marker(7, ControlType.commit, epoch=1))
    append(log, build_batch([Record(0, 2_000, b"k", b"v")]))
    append(log, data(7, epoch=1))
    append(log, build_batch([Record(0, 2_000, b"k", b"v")] * 2))
    return log


class Coordinators:
    """Knows what the test says; `meanwhile` runs before the answer."""

    def __init__(self) -> None:
        self.asked: list[tuple[frozenset[int], TopicPartition]] = []
        self.known = {7: ONGOING}
        self.meanwhile: Callable[[], None] = lambda: None

    async def find(self, producer_ids: frozenset[int], partition: TopicPartition) -> Coordinated:
        self.asked.append((producer_ids, partition))
        self.meanwhile()
        known = {number: self.known[number] for number in producer_ids if number in self.known}
        return Coordinated(known, ())


@pytest.fixture
def coordinators() -> Coordinators:
    return Coordinators()


async def facts_of(
    log: Log, offset: int, coordinators: Coordinators | None = None, **limits: Any
) -> TransactionFacts:
    partition: Any = SimpleNamespace(topic="t", index=0, log=log, high_watermark=log.end_offset)
    location = await find_location(log, offset)
    assert location is not None
    find = (coordinators or Coordinators()).find
    return await transaction_facts(partition, location.header, find, **limits)


OPEN = [OpenTransaction(7, 1, 8, 2_007)]
ONGOING = CoordinatedTransaction("x", 1, "Ongoing", 1_000, 60_000, True)


async def test_every_record_finds_its_own_marker(log: Log) -> None:
    assert len(log.segments) > 1
    committed, aborted = EndMarker(6, True, 3_000), EndMarker(5, False, 3_000)
    for offset, found in {0: committed, 1: committed, 3: aborted, 4: aborted}.items():
        assert await facts_of(log, offset) == TransactionFacts(8, OPEN, found, found.offset)


async def test_a_marker_is_its_own(log: Log) -> None:
    assert (await facts_of(log, 5)).marker == EndMarker(5, False, 3_000)


async def test_open_transactions_and_records_outside_are_not_searched(log: Log) -> None:
    assert await facts_of(log, 2) == TransactionFacts(8, OPEN)
    for offset in (8, 9, 10):
        assert await facts_of(log, offset) == TransactionFacts(8, OPEN, coordinated={7: ONGOING})


async def test_coordinators_are_asked_about_what_readers_wait_for(
    log: Log, coordinators: Coordinators
) -> None:
    append(log, data(9))
    for offset, asked in {2: [], 9: [{7}], 10: [{7}], 12: [{7, 9}]}.items():
        coordinators.asked.clear()
        coordinators.known[9] = ONGOING
        await facts_of(log, offset, coordinators)
        assert coordinators.asked == [(frozenset(ids), ("t", 0)) for ids in asked], offset


async def test_a_transaction_that_ends_during_the_question_does_not_hang(
    log: Log, coordinators: Coordinators
) -> None:
    def end() -> None:
        append(log, marker(7, ControlType.commit, epoch=1))
        coordinators.meanwhile = lambda: None

    coordinators.known.clear()
    coordinators.meanwhile = end
    facts = await facts_of(log, 8, coordinators)
    assert facts.marker == EndMarker(12, True, 3_000)
    assert facts.open == []
    assert len(coordinators.asked) == 1


async def test_a_transaction_that_nobody_coordinates(log: Log, coordinators: Coordinators) -> None:
    coordinators.known.clear()
    assert await facts_of(log, 8, coordinators) == TransactionFacts(8, OPEN)
    assert len(coordinators.asked) == 1


async def test_a_search_has_a_limit(log: Log) -> None:
    facts = await facts_of(log, 0, budget_bytes=1)
    assert facts.marker is None
    assert 0 < facts.searched_to <= 8


async def test_a_producer_that_is_forgotten_with_its_open_transaction(log: Log) -> None:
    log.set_producers(type(log.producers)(log.end_offset))
    assert await facts_of(log, 8) == TransactionFacts(12, [], None, EVERYTHING)


async def test_damage_further_on_ends_the_search(log: Log) -> None:
    location = await find_location(log, 6)
    assert location is not None
    path = Path(log.segments[log.segment_number(6)].path)
    content = bytearray(path.read_bytes())
    content[location.batch_position + 16] = 9  # the magic byte
    path.write_bytes(content)
    facts = await facts_of(log, 0)
    assert facts.marker is None
    assert facts.searched_to <= 6
