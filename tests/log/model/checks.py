"""Compares a log with its model.

`check` is cheap, and does not make the log read its producers: what an idle log forgets must show.
`check_producers` makes it read them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from random import Random

from tests.log.model.batches import Batch, batches_of
from tests.log.model.index_files import check_index_files
from tests.log.model.lineage import Known
from tests.log.model.model import LogModel
from tests.log.model.violation import Violation, ensure

from ottla.log import names
from ottla.log.aborted_transactions import aborted_transactions
from ottla.log.log import Log
from ottla.log.lookup import max_timestamp_searches, timestamp_searches
from ottla.log.producer_snapshot import decode_snapshot
from ottla.log.producer_state import Producer, ProducerState
from ottla.records.control import ControlType

FETCH_BYTES = 700


def check(log: Log, model: LogModel, random: Random, *, lookups: int) -> None:
    """The offsets, the files' bytes, the epochs and so many look-ups."""
    ensure(log.start_offset == model.start, f"start {log.start_offset}, not {model.start}")
    ensure(log.end_offset == model.end, f"end {log.end_offset}, not {model.end}")
    _check_files(log, model)
    _check_epochs(log, model)
    for offset in _offsets(model, random, lookups):
        _check_read(log, model, offset, random)
    if random.random() < 0.4:
        _check_times(log, model, random)
    if log.loaded_producers is not None:
        _check_state(log.loaded_producers, model)


def check_producers(log: Log, model: LogModel, random: Random) -> None:
    """The producers, the last stable offset, and what read_committed returns."""
    _check_state(log.producers, model)
    _check_stable(log, model)
    _check_committed(log, model, random)


def check_folder(log: Log, model: LogModel, torn: Iterable[str] = ()) -> None:
    """The snapshots and the index files. `torn` names files that a power failure damaged."""
    if not log.is_on_disk:
        return
    found = sorted(
        offset
        for name in os.listdir(log.folder)
        if name.endswith(names.SNAPSHOT) and (offset := names.offset_of(name)) is not None
    )
    ensure(log.snapshots == found, f"snapshots {found} on disk; the log knows {log.snapshots}")
    for offset in found:
        last = max(log.end_offset, log.active.base_offset)  # a roll before an append that failed
        ensure(offset <= last, f"a snapshot at {offset} is past the end")
        name = names.file_name(offset, names.SNAPSHOT)
        if name in torn:
            continue
        with open(f"{log.folder}/{name}", "rb") as file:
            producers = decode_snapshot(file.read())
        _compare_all({p.producer_id: p for p in producers}, model, offset, f"snapshot {offset}")
    check_index_files(log, model)


def read_files(log: Log) -> list[Batch]:
    """All batches in the files of the log's segments."""
    found: list[Batch] = []
    for segment in log.segments:
        if segment.size_bytes:
            with open(segment.path, "rb") as file:
                found += batches_of(file.read(segment.size_bytes))
    return found


def _check_files(log: Log, model: LogModel) -> None:
    bases = [segment.base_offset for segment in log.segments]
    ensure(bool(bases), "the log has no segment")
    ensure(bases == sorted(set(bases)), f"segments {bases}")
    ensure(bases[0] <= model.start, f"the first segment, {bases[0]}, is after the start")
    batches, number = model.stored, 0
    for segment, following in zip(log.segments, [*bases[1:], model.end + 1], strict=True):
        expected = []
        while number < len(batches) and batches[number].base < following:
            expected.append(batches[number].data)
            number += 1
        wanted = b"".join(expected)
        ensure(
            segment.size_bytes == len(wanted),
            f"segment {segment.base_offset} has {segment.size_bytes} bytes, not {len(wanted)}",
        )
        if not wanted and not segment.has_files:
            continue
        with open(segment.path, "rb") as file:
            data = file.read()
        if data != wanted:
            rest = data[len(wanted) :]
            is_spare = log.config.preallocate and segment is log.active and not any(rest)
            ensure(
                data[: len(wanted)] == wanted and is_spare,
                f"segment {segment.base_offset} has other bytes in its file ({len(data)} bytes)",
            )
    ensure(number == len(batches), f"{batches[number:]} are in no segment")


def _check_epochs(log: Log, model: LogModel) -> None:
    found = _inside(model, [(each.epoch, each.start_offset) for each in log.epochs.entries])
    wanted = _inside(model, model.epochs)
    ensure(found == wanted, f"leader epochs {found}, not {wanted}")


def _inside(model: LogModel, epochs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The epochs of the offsets from the log's start to its end."""
    before = [epoch for epoch, start in epochs if start <= model.start][-1:]
    after = [each for each in epochs if each[1] > model.start]
    inside = [*((epoch, model.start) for epoch in before), *after]
    return [each for each in inside if each[1] < model.end]


def adopt_epochs(log: Log, model: LogModel) -> None:
    """After a crash: the epochs that the log knows are right if each batch has its own."""
    for batch in model.stored:
        epoch = log.epochs.epoch_of(batch.base)
        ensure(
            epoch == batch.header.leader_epoch or batch.base < model.epochs_from,
            f"leader epoch {epoch} at {batch}: {log.epochs.entries}",
        )
    model.epochs = [(each.epoch, each.start_offset) for each in log.epochs.entries]


def _offsets(model: LogModel, random: Random, count: int) -> list[int]:
    """Offsets to look up, gaps first."""
    if model.start >= model.end:
        return []
    gaps = [
        b.base - 1 for a, b in zip(model.stored, model.stored[1:], strict=False) if a.next < b.base
    ]
    gaps = [offset for offset in gaps if offset >= model.start]
    chosen = random.sample(gaps, min(len(gaps), (count + 1) // 2))
    if model.end - model.start <= count:
        return [*range(model.start, model.end)]
    for _ in range(count - len(chosen)):
        chosen.append(random.randrange(model.start, model.end))
    return [*chosen, model.end - 1]


def _check_read(log: Log, model: LogModel, offset: int, random: Random) -> None:
    first = model.first_from(offset)
    data = log.read(offset, max_bytes=1).read()
    if data != (first.data if first is not None else b""):
        got = ", ".join(map(str, batches_of(data)))
        raise Violation(f"offset {offset} reads [{got}] and not {first}")
    if random.random() < 0.3:
        _check_long_read(log, model, offset, random)


def _check_long_read(log: Log, model: LogModel, offset: int, random: Random) -> None:
    """A read may end inside a batch, but never has a byte of a batch that reaches `up_to`."""
    up_to = random.randint(offset, model.end)
    data = log.read(offset, max_bytes=random.randrange(1, 2000), up_to_offset=up_to).read()
    allowed = [batch.data for batch in model.stored if offset <= batch.last < up_to]
    least = len(allowed[0]) if allowed else 0
    if len(data) < least or not b"".join(allowed).startswith(data):
        got = ", ".join(map(str, batches_of(data)))
        raise Violation(f"reading {offset} up to {up_to} returns [{got}], {len(data)} bytes")


def _check_times(log: Log, model: LogModel, random: Random) -> None:
    records = [r for b in model.stored if b.last >= model.start for r in b.records]
    if not records:
        return
    time_ms = random.choice(records).timestamp_ms + random.choice((-1, 0, 0, 1))
    wanted = next(
        (r.offset for r in records if r.timestamp_ms >= time_ms and r.offset >= model.start), None
    )
    found = next((f for search in timestamp_searches(log, time_ms) if (f := search.run())), None)
    offset = None if found is None else found.offset
    ensure(offset == wanted, f"time {time_ms} is found at {offset}, not {wanted}")
    latest_ms = max(batch.header.max_timestamp for batch in model.stored)
    latest = next((f for search in max_timestamp_searches(log) if (f := search.run())), None)
    latest_found = None if latest is None else latest.timestamp_ms
    ensure(latest_found == latest_ms, f"the largest time is {latest_found}, not {latest_ms}")


def _check_state(state: ProducerState, model: LogModel) -> None:
    _compare_all(state.producers, model, model.end, "the log")
    for producer_id in _present(model):
        ensure(producer_id in state.producers, f"producer {producer_id} is forgotten")


def _present(model: LogModel) -> set[int]:
    """The producers that must be known: they have batches after the log's start."""
    return {
        batch.producer_id
        for batch in model.stored
        if batch.last >= model.start
        and batch.producer_id >= 0
        and (batch.is_data or batch.marker is not None)
    } - model.expired


def _compare_all(found: dict[int, Producer], model: LogModel, offset: int, where: str) -> None:
    wanted, expired = model.lineage.at(offset), model.expired
    for producer_id, producer in found.items():
        known = wanted.get(producer_id)
        if known is None:
            raise Violation(f"{where} knows {producer}, who has written nothing")
        if producer_id not in expired and not _is_known(producer, known, model, offset):
            raise Violation(f"{where} knows {producer} instead of {known}")


def _is_known(producer: Producer, known: Known, model: LogModel, offset: int) -> bool:
    """Whether the log may know that of the producer, as of `offset`."""
    if known.traces and not model.has_batch(known.traces[-1].last_offset):
        # Known, or read again without its last batch, which retention or compaction removed.
        return producer.producer_epoch <= known.epoch
    # A snapshot has one time for the producer: that of its last batch or marker.
    traces = [trace[:3] for trace in producer.batches]
    written = [trace[:3] for trace in known.traces]
    if model.was_compacted:
        # Read again from batches of which some are gone.
        written = [each for each in written if each in traces or each == written[-1]]
    return (
        producer.producer_epoch == known.epoch
        and traces == written[len(written) - len(traces) :]
        and (bool(traces) == bool(written) or producer.producer_id in model.dropped)
        and producer.coordinator_epoch in (known.coordinator_epoch, -1)
        and _may_have_started(producer, known, model, offset)
    )


def _may_have_started(producer: Producer, known: Known, model: LogModel, offset: int) -> bool:
    """Where the transaction's first batches are gone, a start finds it later, or not at all."""
    started = producer.transaction_start_offset
    if started == known.started:
        return True
    first = model.first_from(known.started)
    is_there = first is not None and first.base == known.started >= model.start
    if known.started < 0 or is_there:
        return False
    batches = model.lineage.transaction_batches(producer.producer_id, known.started, offset)
    return started < 0 or any(batch.base == started for batch in batches)


def _check_stable(log: Log, model: LogModel) -> None:
    """The last stable offset is at the first record of a transaction that is open, or whose marker
    is not committed. What retention or compaction removed of one may count or not.
    """
    found = log.last_stable_offset(model.high_watermark)
    earliest, latest = [model.high_watermark], [model.high_watermark]
    for producer_id, known in model.lineage.producers.items():
        if known.started >= 0:
            earliest.append(known.started)
            if producer_id not in model.expired:
                latest += _left(model, producer_id, known.started, model.end)
    for ended in model.lineage.ended:
        if ended.marker >= model.high_watermark:
            earliest.append(ended.first)
            if ended.marker >= model.loaded_end:
                latest += _left(model, ended.producer_id, ended.first, ended.marker)
    low, high = max(min(earliest), model.start), max(min(latest), model.start)
    ensure(low <= found <= high, f"the last stable offset is {found}, not {low} to {high}")


def _left(model: LogModel, producer_id: int, first: int, end: int) -> list[int]:
    """The first offset that is left of a transaction, if any."""
    return [
        batch.base
        for batch in model.stored
        if batch.producer_id == producer_id
        and batch.is_data
        and first <= batch.base < end
        and batch.last >= model.start
    ][:1]


def _check_committed(log: Log, model: LogModel, random: Random) -> None:
    """Reads as a consumer under read_committed (the Java client's CompletedFetch)."""
    stable = log.last_stable_offset(model.high_watermark)
    ended = {(each.producer_id, each.marker): each for each in model.lineage.ended}
    offset = begin = random.randint(model.start, max(model.start, stable))
    returned: list[int] = []
    while offset < stable:
        found = log.read(offset, max_bytes=FETCH_BYTES, up_to_offset=stable)
        waiting = sorted(
            aborted_transactions(log, found, offset, stable), key=lambda each: each.first_offset
        )
        for each in waiting:
            known = ended.get((each.producer_id, each.last_offset))
            is_true = known is not None and known.is_aborted and known.first <= each.first_offset
            ensure(is_true, f"the fetch at {offset} lists {each}, which was never aborted")
        aborted: set[int] = set()
        before = offset
        for batch in batches_of(found.read()):
            while waiting and waiting[0].first_offset <= batch.last:
                aborted.add(waiting.pop(0).producer_id)
            if batch.marker is not None and batch.marker.type is ControlType.abort:
                aborted.discard(batch.producer_id)
            elif batch.is_data and not (
                batch.header.is_transactional and batch.producer_id in aborted
            ):
                returned.append(batch.base)
            offset = batch.next
        if offset == before:
            break
    wanted = _committed(model, begin, stable)
    ensure(
        returned == wanted,
        f"read_committed from {begin} to {stable} returns {returned}, not {wanted}",
    )


def _committed(model: LogModel, offset: int, stable: int) -> list[int]:
    aborted = [each for each in model.lineage.ended if each.is_aborted]
    return [
        batch.base
        for batch in model.stored
        if batch.is_data
        and batch.last >= offset
        and batch.last < stable
        and not (
            batch.header.is_transactional
            and any(
                e.producer_id == batch.producer_id and e.first <= batch.base < e.marker
                for e in aborted
            )
        )
    ]
