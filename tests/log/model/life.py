"""One life of one log: the steps of a plan, each done to the real log and to the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from tests.log.model.broker import Broker
from tests.log.model.checks import adopt_epochs, check, check_folder, check_producers, read_files
from tests.log.model.disk import Disk, Killed
from tests.log.model.model import Doubt, LogModel
from tests.log.model.plan import Step
from tests.log.model.violation import Violation, ensure

from ottla.log.config import LogConfig
from ottla.log.flush import FlushTask
from ottla.log.names import file_name
from ottla.protocol.errors import ApiError

Steps = Mapping[str, Callable[["Life"], None]]
"""What a step of each name does."""


class Life:
    """Runs in a folder of its own."""

    def __init__(self, seed: int, folder: Path, table: Steps) -> None:
        self.table = table
        self.random = random = Random(f"life {seed}")
        self.config = config = _config(random)
        self.disk = Disk(random)
        self.model = LogModel()
        self.broker = Broker(folder, config)
        self.now_ms = 1_000_000
        self.transcript: list[str] = [_described(config)]
        self.max_open_files = random.choice((1, 2, 8))
        self.keyed = config.cleanup_compact or random.random() < 0.5
        self.gaps = config.cleanup_compact
        self.transactions = random.random() < 0.7
        self.step = Step("", 0)
        self.flushing: tuple[FlushTask, int, int] | None = None
        self.recovery_point = 0
        """As last checked."""
        self.cuts = 0
        self.has_failed_cut = False
        """A cut in a gap may lack its last step, and is not tried again: the end is reached."""
        self.is_checkpoint_due = False
        self.torn: set[str] = set()

    def run(self, steps: Sequence[Step]) -> None:
        """Raises Violation, or whatever the log raises that it must not."""
        with self.disk.watching():
            self.broker.open(self.now_ms, self.max_open_files)
            for step in steps:
                self.random = Random(step.seed)
                self.disk.random = self.random
                self.now_ms += self.random.randrange(200)
                self.step = step
                self.note(f"- {step}")
                self.table[step.name](self)
                self.check()
            self.look()

    def note(self, line: str) -> None:
        self.transcript.append(line)

    def check(self) -> None:
        log, model, random = self.broker.log, self.model, self.random
        check(log, model, random, lookups=4)
        if log.recovery_point != self.recovery_point:
            self.recovery_point = log.recovery_point
            self.check_synced(log.recovery_point)
        if random.random() < 0.1:
            check_folder(log, model, self.torn)

    def synced_end(self) -> int:
        """The offset up to which the disk has all batches."""
        batches, number = self.model.stored, 0
        for segment in self.broker.log.segments:
            size_bytes, position = self.disk.synced_bytes(segment.path), 0
            while number < len(batches) and position < segment.size_bytes:
                position += len(batches[number].data)
                if position > size_bytes:
                    return batches[number].base
                number += 1
        return self.model.end

    def check_synced(self, offset: int) -> None:
        synced = self.synced_end()
        ensure(offset <= synced, f"recovery point {offset}; only {synced} is synced")

    def look(self) -> None:
        """Check everything."""
        log, model = self.broker.log, self.model
        check_producers(log, model, self.random)
        check(log, model, self.random, lookups=20)
        check_folder(log, model, self.torn)

    def follow(self) -> None:
        if self.model.is_leader:
            self.model.begin_epoch(is_leader=False)

    def checkpoint(self) -> None:
        """Write the checkpoint files."""
        self.broker.checkpoint(self.model.high_watermark)
        self.is_checkpoint_due = False

    def meanwhile(self, *names: str) -> None:
        """What the loop does while a worker has a task."""
        step, self.step = self.step, self.step._replace(fault="")
        for name in names:
            self.note(f"  - {name} meanwhile")
            self.table[name](self)
        self.step = step

    # Ends and starts.

    def reopen(self, doubt: Doubt, *, has_power: bool = True) -> None:
        model, broker, random = self.model, self.broker, self.random
        broker.kill()
        doubt.latest_end = max(doubt.latest_end, broker.log.active.base_offset)
        if not has_power:
            lost = self.disk.fail_power(broker.folder, self.spared())
            self.torn.update(lost)
            self.note(f"    lost: {', '.join(lost) or 'nothing'}")
        self.began()
        start_checkpoint = broker.start_checkpoint
        high_watermark = broker.high_watermark_checkpoint
        if random.random() < 0.15:
            try:
                with self.disk.failing("kill", self.countdown()):
                    broker.open(self.now_ms, self.max_open_files)
            except Killed:
                self.note(f"    the start is killed in {self.disk.fired}")
            broker.kill()
        broker.open(self.now_ms, self.max_open_files)
        log = broker.log
        base = log.segments[0].base_offset
        wanted = max(start_checkpoint, base)
        if start_checkpoint > doubt.least_end:
            doubt.empty_at |= {start_checkpoint}
        elif start_checkpoint == doubt.least_end:
            # Nothing that counts is left: the log may be made again there.
            doubt.may_start_at = max(doubt.may_start_at, start_checkpoint)
        model.resolve(doubt, read_files(log), log.start_offset, log.end_offset)
        ensure(log.start_offset == wanted, f"start {log.start_offset}, not {wanted}")
        model.start = log.start_offset
        adopt_epochs(log, model)
        model.high_watermark = max(model.start, min(high_watermark, model.end))
        model.loaded_end = model.end
        self.opened()

    def spared(self) -> set[str]:
        """Files that this power failure does not damage: the indexes of a segment that was rolled
        exactly at the recovery point and not flushed since (see `index_file`).
        """
        segments = self.broker.log.segments
        return {
            file_name(before.base_offset, suffix)
            for before, segment in pairwise(segments)
            if segment.base_offset == self.broker.recovery_point_checkpoint
            for suffix in (".index", ".timeindex", ".txnindex")
        }

    def began(self) -> None:
        self.flushing, self.has_failed_cut = None, False
        self.is_checkpoint_due = False

    def opened(self) -> None:
        log, model = self.broker.log, self.model
        bases = [segment.base_offset for segment in log.segments]
        self.note(f"    reopened at {log.start_offset} to {log.end_offset}, segments {bases}")
        check(log, model, self.random, lookups=10)
        check_folder(log, model, self.torn)
        if self.random.random() < 0.3:
            check_producers(log, model, self.random)
        model.begin_epoch(is_leader=self.random.random() < 0.5)
        if model.is_leader:
            log.epochs.begin(model.leader_epoch, log.end_offset)
        self.note(f"    {'leads' if model.is_leader else 'follows'} in epoch {model.leader_epoch}")

    # Failures.

    def countdown(self) -> int:
        return int(self.random.expovariate(1 / self.random.choice((2, 8))))

    def attempt(
        self, work: Callable[[], Any], killed: Doubt, failed: Doubt, fault: str | None = None
    ) -> Any:
        """What `work` returns; None if the step's fault ended it. Then the model knows what there
        is: `killed` after the end of the process, `failed` after an error.
        """
        fault = self.step.fault if fault is None else fault
        try:
            with self.disk.failing(fault, self.countdown()):
                return work()
        except Killed:
            self.note(f"    the process ends in {self.disk.fired}")
            self.reopen(killed)
        except ApiError as error:
            self.note(f"    {error}")
            ensure(bool(self.disk.fired), f"refused: {error}")
            if self.disk.fired == "fsync":
                self.stop_after_sync()
            else:
                self.failed(failed)
        return None

    def stop_after_sync(self) -> None:
        """After a failed fsync none may be tried again: it would succeed, and what the kernel has
        dropped would count as synced. So the broker stops.
        """
        try:
            self.broker.flush()
        except ApiError:
            self.note("    the broker stops, and then the machine")
        else:
            raise Violation("a flush succeeds after one that failed")
        doubt = Doubt(list(self.model.stored), self.synced_end(), has_holes=self.gaps)
        self.reopen(doubt, has_power=False)

    def failed(self, doubt: Doubt) -> None:
        log, model = self.broker.log, self.model
        model.resolve(doubt, read_files(log), log.start_offset, log.end_offset)
        model.start = log.start_offset


def _config(random: Random) -> LogConfig:
    by_size, by_time = random.random() < 0.4, random.random() < 0.2
    is_compacted = random.random() < 0.45
    return LogConfig(
        segment_bytes=random.choice((700, 1500, 3000)),
        segment_ms=random.choice((10**9, 10**9, 1500)),
        index_interval_bytes=random.choice((1, 150, 400)),
        retention_bytes=random.choice((800, 3000)) if by_size else -1,
        retention_ms=2000 if by_time else -1,
        cleanup_delete=not is_compacted or random.random() < 0.3,
        cleanup_compact=is_compacted,
        delete_retention_ms=random.choice((0, 500)),
        min_cleanable_dirty_ratio=0.0,
        file_delete_delay_ms=0,
        preallocate=random.random() < 0.1,
    )


def _described(config: LogConfig) -> str:
    changed = {
        name: getattr(config, name)
        for name in LogConfig.__slots__
        if getattr(config, name) != getattr(LogConfig(), name)
    }
    return ", ".join(f"{name}={value}" for name, value in changed.items())
