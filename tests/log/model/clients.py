"""What producers and transaction coordinators send next, at random but as they may."""

from __future__ import annotations

from random import Random

from tests.log.model.batches import build_batch
from tests.log.model.lineage import Known
from tests.log.model.model import LogModel

from ottla.records.control import ControlType, write_end_marker
from ottla.records.header import LARGEST_SEQUENCE
from ottla.records.record import Record

KEYS = 5
COORDINATOR_EPOCH = 3
IDEMPOTENT = (1, 2)
TRANSACTIONAL = (11, 12, 13)


def records(random: Random, now_ms: int, *, keyed: bool) -> list[Record]:
    """One to four records, near the present."""
    return [record(random, now_ms, keyed=keyed) for _ in range(random.choice((1, 1, 2, 3, 4)))]


def record(random: Random, now_ms: int, *, keyed: bool) -> Record:
    key = b"k%d" % random.randrange(KEYS) if keyed else None
    value = None if keyed and random.random() < 0.2 else random.randbytes(random.randrange(3, 90))
    return Record(0, now_ms + random.randrange(-40, 40), key, value)


def plain(random: Random, now_ms: int, *, keyed: bool) -> bytes:
    return build_batch(records(random, now_ms, keyed=keyed))


def idempotent(random: Random, model: LogModel, now_ms: int, *, keyed: bool) -> bytes:
    """The next batch of an idempotent producer."""
    producer_id = random.choice(IDEMPOTENT)
    return _next(random, model, producer_id, now_ms, keyed=keyed, is_transactional=False)


def in_transaction(random: Random, model: LogModel, now_ms: int, *, keyed: bool) -> bytes:
    """The next batch of a transaction, which it may begin, or its marker."""
    producer_id = random.choice(TRANSACTIONAL)
    known = model.lineage.producers.get(producer_id)
    if known is not None and known.started >= 0:
        if random.random() < 0.45 or not is_last_there(model, known):
            return marker(random, producer_id, known, now_ms)
    elif known is not None and random.random() < 0.05:
        return marker(random, producer_id, known, now_ms)
    return _next(random, model, producer_id, now_ms, keyed=keyed, is_transactional=True)


def marker(random: Random, producer_id: int, known: Known, now_ms: int) -> bytes:
    kind = random.choice((ControlType.commit, ControlType.abort))
    # In transactions of version 2 each has an epoch of its own (KIP-890).
    epoch = known.epoch + (random.random() < 0.5)
    return write_end_marker(kind, producer_id, epoch, COORDINATOR_EPOCH, now_ms)


def _next(
    random: Random,
    model: LogModel,
    producer_id: int,
    now_ms: int,
    *,
    keyed: bool,
    is_transactional: bool,
) -> bytes:
    known = model.lineage.producers.get(producer_id)
    epoch, sequence = 0, random.choice((0, 0, 0, LARGEST_SEQUENCE - 2))
    if known is not None:
        is_new = (
            producer_id in model.expired
            or not is_last_there(model, known)
            or (known.started < 0 and random.random() < 0.05)
        )
        epoch = known.epoch + is_new
        sequence = 0
        if not is_new and known.traces:
            sequence = (known.traces[-1].last_sequence + 1) & LARGEST_SEQUENCE
    return build_batch(
        records(random, now_ms, keyed=keyed),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def is_last_there(model: LogModel, known: Known) -> bool:
    """Whether the log still has the producer's last batch. If not, a restart may forget its
    sequence, and the producer must begin a new epoch."""
    if not known.traces:
        return True
    return model.has_batch(known.traces[-1].last_offset)
