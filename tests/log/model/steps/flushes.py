"""Segments are rolled, flushed and checkpointed."""

from __future__ import annotations

from tests.log.model.life import Life

from ottla.log.flush import FlushTask


def roll(life: Life) -> None:
    doubt = life.model.doubt()
    life.attempt(lambda: life.broker.log.roll(life.now_ms), doubt, doubt)


def flush(life: Life) -> None:
    doubt = life.model.doubt()
    if life.attempt(lambda: (life.broker.flush(),), doubt, doubt):
        life.check_synced(life.model.end)


def begin_flush(life: Life) -> None:
    life.flushing = (FlushTask(life.broker.log), life.model.end, life.cuts)


def end_flush(life: Life) -> None:
    """Ends the one that began some steps before."""
    if life.flushing is None:
        return
    task, up_to, cuts = life.flushing
    life.flushing = None
    task.run()
    if life.random.random() < 0.5:
        life.meanwhile("truncate", "append")
    if task.log is not life.broker.log:
        return
    task.apply()
    if cuts == life.cuts:
        life.check_synced(up_to)


def checkpoint(life: Life) -> None:
    doubt = life.model.doubt()
    if life.attempt(lambda: (life.broker.flush(),), doubt, doubt):
        life.checkpoint()
