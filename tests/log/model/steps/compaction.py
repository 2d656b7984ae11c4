"""The cleaner compacts the log, and the loop goes on meanwhile."""

from __future__ import annotations

from tests.log.model.checks import read_files
from tests.log.model.cleaned import Round, check_cleaned
from tests.log.model.disk import Killed
from tests.log.model.life import Life
from tests.log.model.model import Doubt
from tests.log.model.violation import ensure

from ottla.log.compaction import Compaction, plan_compaction
from ottla.protocol.errors import ApiError


def compact(life: Life) -> None:
    if not life.config.cleanup_compact:
        return
    model, log, random, broker = life.model, life.broker.log, life.random, life.broker
    fault, first = life.step.fault, random.random() < 0.2
    if random.random() < 0.7:
        life.meanwhile("append", "end_transactions", "commit", "roll")
    plan = plan_compaction(
        log,
        clean_offset=broker.clean_offset,
        now_ms=life.now_ms,
        high_watermark=model.high_watermark,
        only_if_due=False,
    )
    if plan is None:
        life.note("    nothing to clean")
        return
    active = {
        producer_id: each
        for producer_id, each in model.lineage.producers.items()
        if producer_id in log.producers.producers
    }
    doubt = model.doubt()
    if life.attempt(lambda: (plan.run(),), doubt, doubt, fault if first else "") is None:
        return
    model.was_compacted = True
    cuts = life.cuts
    if random.random() < 0.3:
        life.meanwhile(random.choice(("append", "retain", "truncate", "roll")))
    if log is not broker.log:
        return
    if cuts != life.cuts:
        plan.discard()
        life.note("    discarded: the log was cut")
        return
    round = Round(
        list(model.stored), model.start, list(model.lineage.ended), active, plan._first_dirty,
        plan._rules.now_ms, life.config.delete_retention_ms,
    )  # fmt: skip
    _apply(life, plan, round, "" if first else fault)


def _apply(life: Life, plan: Compaction, round: Round, fault: str) -> None:
    broker, model, log = life.broker, life.model, life.broker.log
    clean_to = plan.clean_offset
    try:
        with life.disk.failing(fault, life.countdown()):
            removals = plan.apply()
    except (Killed, ApiError) as error:
        ensure(bool(life.disk.fired), f"refused: {error}")
        life.note(f"    the process ends in {life.disk.fired}")
        life.reopen(Doubt(list(model.stored), model.end, is_cleaned=True))
        check_cleaned(round, model.stored, clean_to, is_complete=False)
        return
    for removal in removals:
        broker.remove_later(removal)
    broker.clean_offset = plan.clean_offset
    found = read_files(log)
    life.note(f"    clean up to {plan.clean_offset}: {' '.join(map(str, found))}")
    check_cleaned(round, found, plan.clean_offset, is_complete=True)
    model.stored = found
