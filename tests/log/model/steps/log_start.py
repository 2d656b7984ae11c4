"""The log's start moves: DeleteRecords and retention."""

from __future__ import annotations

from tests.log.model.life import Life
from tests.log.model.steps.leadership import commit
from tests.log.model.violation import ensure

from ottla.log.retention import remove_expired


def delete_records(life: Life) -> None:
    model, random = life.model, life.random
    if random.random() < 0.5:
        commit(life)
    if model.high_watermark <= model.start:
        return
    offset = random.choice(
        (model.high_watermark, random.randint(model.start + 1, model.high_watermark))
    )
    life.note(f"    before {offset}")
    life.broker.log.advance_start(offset)
    model.start_moved(offset)


def retain(life: Life) -> None:
    model, log = life.model, life.broker.log
    doubt = model.doubt()
    doubt.may_start_at = model.high_watermark
    removal = life.attempt(
        lambda: (remove_expired(log, now_ms=life.now_ms, high_watermark=model.high_watermark),),
        doubt,
        doubt,
    )
    if removal is not None:
        life.broker.remove_later(removal[0])
        _retained(life)


def _retained(life: Life) -> None:
    model, log = life.model, life.broker.log
    first = log.segments[0].base_offset
    for batch in model.stored:
        gone = batch.base < first
        ensure(not gone or batch.next <= model.high_watermark, f"retention removed {batch}")
    may_go = life.config.retention_bytes >= 0 or life.config.retention_ms >= 0
    ensure(may_go or first <= model.start, f"retention moved the start to {first}")
    model.files_removed(first)
    if first > model.start:
        model.start_moved(first)
    life.note(f"    the files begin at {first}")


def remove_files(life: Life) -> None:
    for removal in life.broker.removals:
        removal.run()
    life.broker.removals.clear()
