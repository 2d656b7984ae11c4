"""Appends: as the leader of producers and coordinators, and as a follower of another leader."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.log.model import clients
from tests.log.model.batches import Batch, batch_of, build_batch, stamped, thinned
from tests.log.model.life import Life
from tests.log.model.model import Doubt, LogModel
from tests.log.model.violation import ensure

from ottla.log.verification import NOT_REQUIRED
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.header import LARGEST_SEQUENCE, iterate_headers


def append(life: Life) -> None:
    """A few batches, with offsets of this leader or of another one."""
    if life.is_checkpoint_due:
        life.checkpoint()
    random, model = life.random, life.model
    if not model.is_leader:
        _copy(life, random.choice((1, 2, 3, 6)), _next)
        return
    for _ in range(random.choice((1, 2, 4))):
        sent = [_next(life, model)]
        if batch_of(sent[0]).producer_id < 0 and random.random() < 0.5:
            sent.append(clients.plain(random, life.now_ms, keyed=life.keyed))
        if not _send(life, sent):
            return


def end_transactions(life: Life) -> None:
    """Each open transaction gets its marker."""
    if life.is_checkpoint_due:
        life.checkpoint()
    known = life.model.lineage.producers
    open_ids = [producer_id for producer_id, each in known.items() if each.started >= 0]
    if not open_ids:
        return
    if not life.model.is_leader:
        ids = iter(open_ids)
        _copy(life, len(open_ids), lambda life, model: _marker(life, model, next(ids)))
        return
    for producer_id in open_ids:
        if not _send(life, [_marker(life, life.model, producer_id)]):
            return


def _send(life: Life, sent: Sequence[bytes]) -> bool:
    """One append as the leader; False if it failed."""
    model, log = life.model, life.broker.log
    batches: list[Batch] = []
    offset = model.end
    for data in sent:
        batches.append(batch_of(stamped(data, offset, model.leader_epoch)))
        offset = batches[-1].next
    whole = b"".join(sent)
    if len(whole) > life.config.segment_bytes:
        return True
    marker = batches[0] if batches[0].marker is not None else None
    life.note("    " + " ".join(map(str, batches)))
    done = life.attempt(
        lambda: log.append(
            whole,
            list(iterate_headers(whole)),
            leader_epoch=model.leader_epoch,
            now_ms=life.now_ms,
            guard=NOT_REQUIRED,
            is_own=marker is not None,
            transaction_version=2 if marker is not None and _is_bumped(model, marker) else 0,
        ),
        Doubt([*model.stored, *batches], model.end),
        model.doubt(),
    )
    if done is None:
        return False
    where = (done.first_offset, done.last_offset)
    ensure(where == (batches[0].base, batches[-1].last), f"appended at {where}")
    model.append(batches, as_follower=False)
    return True


def _copy(life: Life, count: int, next_batch: Callable[[Life, LogModel], bytes]) -> None:
    """One fetch of a follower: its leader's log may have gaps, between batches and in them."""
    model, log, random = life.model, life.broker.log, life.random
    ahead = model.fork()
    batches: list[Batch] = []
    epochs = [epoch for epoch, _ in model.epochs]
    epochs += [batch.header.leader_epoch for batch in model.lineage.batches[-1:]]
    epoch = max(epochs, default=0)
    for _ in range(count):
        data = next_batch(life, ahead)
        offset = ahead.end
        if life.gaps and random.random() < 0.4:
            offset += random.randrange(1, 8)
        records = batch_of(data).header.count
        if life.gaps and records > 1 and random.random() < 0.5:
            kept = random.sample(range(records), random.randrange(1, records))
            data = thinned(data, sorted(kept))
        epoch = random.choice((epoch, model.leader_epoch))
        batches.append(batch_of(stamped(data, offset, epoch)))
        ahead.append(batches[-1:], as_follower=False)
    whole = b"".join(batch.data for batch in batches)
    life.note("    copies " + " ".join(map(str, batches)))
    doubt = Doubt([*model.stored, *batches], model.end)
    done = life.attempt(
        lambda: log.append_as_follower(whole, list(iterate_headers(whole)), now_ms=life.now_ms),
        doubt,
        doubt,
    )
    if done is not None:
        model.append(batches, as_follower=True)
        model.high_watermark = random.randint(model.high_watermark, model.end)
        log.high_watermark_moved(model.high_watermark)


def _marker(life: Life, model: LogModel, producer_id: int) -> bytes:
    return clients.marker(
        life.random, producer_id, model.lineage.producers[producer_id], life.now_ms
    )


def _next(life: Life, model: LogModel) -> bytes:
    random, now_ms, keyed = life.random, life.now_ms, life.keyed
    kind = random.random()
    if life.transactions and kind < 0.6:
        return clients.in_transaction(random, model, now_ms, keyed=keyed)
    if kind < 0.8:
        return clients.idempotent(random, model, now_ms, keyed=keyed)
    return clients.plain(random, now_ms, keyed=keyed)


def _is_bumped(model: LogModel, marker: Batch) -> bool:
    known = model.lineage.producers.get(marker.producer_id)
    return known is not None and marker.header.producer_epoch > known.epoch


def send_wrong(life: Life) -> None:
    """Batches that a leader must recognise: a duplicate, an old epoch, a sequence too far."""
    model, log, random = life.model, life.broker.log, life.random
    known = {
        producer_id: each
        for producer_id, each in model.lineage.producers.items()
        if producer_id not in model.expired and clients.is_last_there(model, each) and each.traces
    }
    if not model.is_leader or not known:
        return
    producer_id = random.choice(sorted(known))
    each = known[producer_id]
    trace = each.traces[-1]
    count = trace.offset_delta + 1
    kind = random.choice(("duplicate", "old epoch", "gap"))
    first_sequence = (trace.last_sequence - trace.offset_delta) & LARGEST_SEQUENCE
    epoch, sequence = each.epoch, first_sequence
    if kind == "old epoch":
        epoch -= 1
    elif kind == "gap":
        sequence = (trace.last_sequence + 3) & LARGEST_SEQUENCE
    if epoch < 0 or trace.last_sequence < 0:
        return
    made = [clients.record(random, life.now_ms, keyed=life.keyed) for _ in range(count)]
    data = build_batch(
        made,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=producer_id in clients.TRANSACTIONAL,
    )
    if len(data) > life.config.segment_bytes:
        return
    life.note(f"    a {kind} of producer {producer_id}: {each}")
    try:
        info = log.append(
            data,
            list(iterate_headers(data)),
            leader_epoch=model.leader_epoch,
            now_ms=life.now_ms,
            guard=NOT_REQUIRED,
        )
    except ApiError as error:
        wanted = {
            "old epoch": ErrorCode.invalid_producer_epoch,
            "gap": ErrorCode.out_of_order_sequence_number,
        }.get(kind)
        ensure(error.code is wanted, f"a {kind} was refused: {error}")
        return
    ensure(kind == "duplicate" and info.is_duplicate, f"a {kind} was appended")
    ensure(
        (info.first_offset, info.last_offset) == (trace.last_offset - count + 1, trace.last_offset),
        f"the duplicate was found at {info}",
    )


def expire(life: Life) -> None:
    """Producers that are silent are dropped from memory."""
    after_ms = life.random.choice((200, 1000))
    life.broker.log.forget_producers(life.now_ms, after_ms)
    for producer_id, known in life.model.lineage.producers.items():
        if known.started < 0 or known.started < life.model.start:
            life.model.dropped[producer_id] = life.model.end
