"""Who leads, and what is committed."""

from __future__ import annotations

from tests.log.model.life import Life


def role(life: Life) -> None:
    model, log = life.model, life.broker.log
    model.begin_epoch(is_leader=life.random.random() < 0.6)
    if model.is_leader:
        log.epochs.begin(model.leader_epoch, log.end_offset)
    life.note(f"    {'leads' if model.is_leader else 'follows'} in epoch {model.leader_epoch}")


def commit(life: Life) -> None:
    model = life.model
    if life.random.random() < 0.6:
        model.high_watermark = model.end
    else:
        model.high_watermark = life.random.randint(model.high_watermark, model.end)
    life.broker.log.high_watermark_moved(model.high_watermark)
    life.note(f"    up to {model.high_watermark}")
