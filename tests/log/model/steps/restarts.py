"""The process ends, in order or not, and starts again."""

from __future__ import annotations

from typing import Final

from tests.log.model.checks import read_files
from tests.log.model.disk import Killed
from tests.log.model.life import Life
from tests.log.model.model import Doubt
from tests.log.model.violation import ensure

from ottla.log.names import file_name
from ottla.protocol.errors import ApiError

SPARE: Final = (".snapshot", ".deleted", ".tmp", "partition.metadata")
"""What a power failure after an orderly stop may damage."""


def stop(life: Life) -> None:
    """An orderly stop, sometimes of the machine, and a start."""
    model, broker = life.model, life.broker
    if life.flushing is not None:
        life.flushing[0].run()
    doubt, base = model.doubt(), broker.log.active.base_offset
    try:
        with life.disk.failing(life.step.fault, life.countdown()):
            broker.stop(model.high_watermark)
    except (Killed, ApiError) as error:
        ensure(bool(life.disk.fired), f"refused: {error}")
        life.note(f"    the process ends in {life.disk.fired}")
        if life.disk.fired == "fsync":
            doubt = Doubt(list(model.stored), life.synced_end(), has_holes=life.gaps)
        life.reopen(doubt, has_power=life.disk.fired != "fsync")
        return
    if life.random.random() < 0.35:
        lost = life.disk.fail_power(broker.folder)
        life.note(f"    the machine stops, too: {', '.join(lost)}")
        _check_harmless(life, lost)
    life.began()
    broker.open(life.now_ms, life.max_open_files)
    log = broker.log
    doubt.latest_end = base
    model.resolve(doubt, read_files(log), log.start_offset, log.end_offset)
    model.loaded_end = model.end
    life.opened()


def _check_harmless(life: Life, lost: list[str]) -> None:
    """After an orderly stop all is synced, but for older snapshots from before a crash: without
    them the batches are read.
    """
    life.torn.update(lost)
    latest = file_name(life.model.end, ".snapshot")
    for name in lost:
        ensure(name != latest and name.endswith(SPARE), f"{name} was not synced")


def kill(life: Life) -> None:
    """All that was written stays, and the end of a cut in a gap."""
    doubt = life.model.doubt()
    if life.broker.log.end_offset >= life.broker.log.active.base_offset and not life.has_failed_cut:
        doubt.exact_end = life.model.end
    life.reopen(doubt)


def lose_power(life: Life) -> None:
    if life.is_checkpoint_due:
        life.checkpoint()
    doubt = Doubt(list(life.model.stored), life.synced_end(), has_holes=life.gaps)
    life.reopen(doubt, has_power=False)
