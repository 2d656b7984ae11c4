"""The log's end is truncated, or all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.log.model.life import Life
from tests.log.model.model import Doubt
from tests.log.model.violation import ensure

from ottla.log.truncation import truncate_fully as truncate_log_fully
from ottla.log.truncation import truncate_to
from ottla.protocol.errors import ApiError


def truncate(life: Life) -> None:
    life.follow()
    model, log, random = life.model, life.broker.log, life.random
    low = model.high_watermark if random.random() < 0.7 else max(model.start - 3, 0)
    offset = random.randint(min(low, model.end), model.end)
    base = log.segments[0].base_offset
    life.note(f"    to {offset} of {model.end}")
    inside = model.first_from(offset)
    end = min(offset, inside.base) if inside is not None else offset
    if offset <= base:
        _restart(life, offset, lambda: truncate_to(log, offset, now_ms=life.now_ms), base)
        return
    doubt = Doubt(list(model.stored), end)
    before = model.end
    removal = life.attempt(lambda: (truncate_to(log, offset, now_ms=life.now_ms),), doubt, doubt)
    if removal is None:
        if life.step.fault != "error":
            return
        life.has_failed_cut = True
        removal = (truncate_to(log, offset, now_ms=life.now_ms),)  # the fetcher tries again
    life.broker.remove_later(removal[0])
    if end < before:
        model.cut(end)
        _was_cut(life, end)


def truncate_fully(life: Life) -> None:
    """The leader's log begins after this one's end, or it begins again."""
    life.follow()
    model, log, random = life.model, life.broker.log, life.random
    if random.random() < 0.3:
        life.broker.log.roll(life.now_ms)
    offset = model.end + random.choice((0, 1, 5, 40, 1000))
    if random.random() < 0.15:
        offset = random.randint(model.start, model.end)
    life.note(f"    to {offset}")
    _restart(life, offset, lambda: truncate_log_fully(log, offset, now_ms=life.now_ms), -1)


def _restart(life: Life, offset: int, work: Callable[[], Any], base: int) -> None:
    model = life.model
    empty_at = {offset, model.end, life.broker.start_checkpoint, base}
    doubt = Doubt(list(model.stored), -1, model.end + 1, frozenset(empty_at))
    if life.step.fault == "error":
        try:
            with life.disk.failing("error", life.countdown()):
                work()
        except ApiError as error:
            life.note(f"    {error}")
            ensure(bool(life.disk.fired), f"refused: {error}")
            life.has_failed_cut = True
            work()  # the fetcher tries again
    else:
        done = life.attempt(lambda: (work(),), doubt, doubt)
        if done is None:
            return
        life.broker.remove_later(done[0])
    if offset == base:
        model.cut(offset)
        model.stored = []
    else:
        model.restart(offset)
    _was_cut(life, offset)


def _was_cut(life: Life, offset: int) -> None:
    life.cuts += 1
    life.broker.store.truncated("t", 0, offset)
    life.is_checkpoint_due = True
    if life.random.random() < 0.6:
        life.checkpoint()
