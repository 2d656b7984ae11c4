"""A partition's life of which everything is known: each append, copy, commit, cut, election,
removal, delivery and clock. It drives the product's timelines, and keeps the truth beside them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ottla.journey.facts import Facts, LogLocation, Position
from ottla.journey.group_steps import about
from ottla.journey.record_in_batch import RecordInBatch
from ottla.journey.retention_rules import SegmentFacts
from ottla.journey.transactions import TransactionFacts
from ottla.log.config import LogConfig
from ottla.log.leader_epochs import LeaderEpochs
from ottla.records.header import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader
from ottla.records.record import Record
from ottla.timelines.folder import TimelineFolder
from ottla.timelines.partition_timeline import PartitionTimeline
from ottla.timelines.pending_steps import Gathering
from ottla.timelines.step import COPIED, Before, By, Opening, Step

START_MS: Final = 1_700_000_000_000
PIPELINE_GROUP: Final = "pipes"
TABLE: Final = "/t"
CONFIG: Final = LogConfig()
NOBODY: Final = -1


class Happened(NamedTuple):
    """An event: its place in the order of all events, and its true time. With real brokers it was
    at some time in the `took_ms` after that.
    """

    seq: int
    ms: int
    took_ms: int = 0


class State(NamedTuple):
    """What the controller says of the partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


class Delivery(NamedTuple):
    """A batch of the pipeline that had a record."""

    at: Happened
    batch: int
    version: int


class Passing(NamedTuple):
    """A group came past a record."""

    at: Happened
    by: By
    was_first: bool


class Cut(NamedTuple):
    """A broker's records that were truncated."""

    broker: int
    records: tuple[Written, ...]


@dataclass(eq=False)
class Written:
    """One record, and everything that happened to it."""

    offset: int
    leader_epoch: int
    leader: int
    at: Happened
    client: str
    producer_id: int
    timestamp_ms: int
    batch: tuple[int, int]
    is_control: bool
    isr_then: tuple[int, ...]
    is_aborted: bool = False
    """Of an aborted transaction."""
    copied: dict[int, Happened] = field(default_factory=dict)
    """When each follower had it."""
    fetched: dict[int, Happened] = field(default_factory=dict)
    """When a leader first saw that the follower has it."""
    fetched_before: dict[int, Happened] = field(default_factory=dict)
    """The same of followers that have lost it since."""
    committed: Happened | None = None
    """When the first leader's high watermark passed it."""
    committed_state: State | None = None
    removed: list[tuple[Happened, str]] = field(default_factory=list)
    """By which leaders, and why."""
    read: dict[str, list[Passing]] = field(default_factory=dict)
    """When each group came past it: the first commit of an offset after it, once more after each
    way back."""
    forgotten: dict[str, list[tuple[Happened, str]]] = field(default_factory=dict)
    """When the offset of a group that was past it was removed, and why."""
    past: set[str] = field(default_factory=set)
    """The groups that are past it."""
    delivered: list[Delivery] = field(default_factory=list)


class Broker:
    """One replica: its log, its clock, and the product's timelines of it."""

    def __init__(self, world: World, number: int, cap_bytes: int) -> None:
        self.world, self.number = world, number
        self.path = world.folder / str(number)
        self.path.mkdir()
        self.cap_bytes = cap_bytes
        self.clock: list[tuple[int, int]] = [(0, 0)]
        """By how much it is ahead of the true time, from which event on."""
        self.is_set_back = False
        """It was, and there has been no crash since."""
        self.log: list[Written] = []
        """From offset 0; those before `start` are removed."""
        self.start = self.high = 0
        self.bases = [0]
        self.heard: State | None = None
        self.is_alive = False
        self.fetches: dict[int, int] = {}
        self.synced: dict[Path, int] = {}
        """What no crash takes from the files."""
        self.epochs = LeaderEpochs(str(self.path))
        self.boot()

    # Its clock.

    def now(self) -> int:
        return self.world.ms + self.clock[-1][1]

    def reads(self, event: Happened) -> int:
        """What its clock said at an event."""
        ahead = next(ahead for since, ahead in reversed(self.clock) if since <= event.seq)
        return event.ms + ahead

    def set_clock(self, ahead_ms: int) -> None:
        self.is_set_back |= ahead_ms < self.clock[-1][1]
        self.clock.append((self.world.happens().seq, ahead_ms))

    # Its life.

    def boot(self) -> None:
        self.is_alive = True
        self.fetches.clear()
        self.heard = None
        self.files = TimelineFolder(self.path, cap_bytes=self.cap_bytes)
        self.dirty: dict[Gathering, None] = {}
        self.timeline = PartitionTimeline(
            start_offset=self.start,
            end_offset=len(self.log),
            high_watermark=self.high,
            now_ms=self.now(),
            dirty=self.dirty,
        )

    def stop(self) -> None:
        self.flush(all_of_them=True)
        self.is_alive = False

    def kill(self, lost: int, torn_bytes: int) -> None:
        """Steps that were not written are lost, and the log's last records if the machine died."""
        if self.is_set_back:
            # If every step that shows it were lost, with what the clock said since, nothing
            # could show that times before and after the crash have no order.
            self.flush(all_of_them=True)
            self.is_set_back, torn_bytes = False, 0
        self.is_alive = False
        self.dirty.clear()
        files = sorted(self.path.glob("0*.timeline"))
        if files and torn_bytes:
            data = files[-1].read_bytes()
            kept = max(len(data) - torn_bytes, self.synced.get(files[-1], 0))
            files[-1].write_bytes(data[:kept])
        if lost:
            kept = max(len(self.log) - lost, self.bases[-1], self.start)
            self.lose(kept)
            self.world.ms += 1  # no machine starts again in the millisecond in which it died
            self.boot()
            self.files.record_truncation(self.now(), len(self.log), self.bases)
            self.synced = {file: file.stat().st_size for file in self.path.glob("0*.timeline")}
            self.is_alive = False

    def lose(self, end: int) -> None:
        if end < len(self.log):
            for record in self.log[end:]:
                record.copied.pop(self.number, None)
                fetched = record.fetched.pop(self.number, None)
                if fetched is not None:
                    record.fetched_before[self.number] = fetched
            self.world.cuts.append(Cut(self.number, tuple(self.log[end:])))
            del self.log[end:]
            self.epochs.truncate_from_end(end)
        self.high, self.start = min(self.high, end), min(self.start, end)
        self.bases = [base for base in self.bases if base <= end] or [end]

    def flush(self, *, all_of_them: bool = False) -> None:
        if self.timeline in self.dirty or all_of_them:
            steps = self.timeline.take(self.now(), all_of_them=all_of_them)
            self.files.write(steps, self.bases)

    def roll(self) -> None:
        if len(self.log) > self.bases[-1]:
            self.bases.append(len(self.log))

    # Its role.

    @property
    def leads(self) -> bool:
        return self.is_alive and self.heard is not None and self.heard.leader == self.number

    def hear(self, state: State) -> None:
        before = self.heard
        if before is not None and before.partition_epoch >= state.partition_epoch:
            return
        self.heard = state
        leads = state.leader == self.number
        if leads and (before is None or before.leader_epoch != state.leader_epoch):
            self.fetches.clear()
            self.world.epoch_starts.setdefault(state.leader_epoch, len(self.log))
            self.epochs.begin(state.leader_epoch, len(self.log))
        self.timeline.in_sync(
            *state[:3], len(self.log), self.now(), state.partition_epoch, leads=leads
        )
        if leads:
            self.advance()

    def append(
        self,
        count: int,
        client: str,
        producer_id: int,
        *,
        is_control: bool,
        is_aborted: bool = False,
    ) -> None:
        assert self.heard is not None
        event, base = self.world.happens(), len(self.log)
        for offset in range(base, base + count):
            self.log.append(
                Written(
                    offset,
                    self.heard.leader_epoch,
                    self.number,
                    event,
                    client,
                    producer_id,
                    self.world.ms + self.world.producer_ahead_ms,
                    (base, base + count - 1),
                    is_control,
                    self.heard.isr,
                    is_aborted,
                )
            )
        self.epochs.assign(self.heard.leader_epoch, base)
        self.epochs.confirm()
        is_plain = not (is_control or is_aborted)
        self.timeline.appended(base, base + count - 1, self.now(), client, producer_id, is_plain)
        self.advance()

    def advance(self) -> None:
        """The leader's high watermark."""
        assert self.heard is not None
        others = [self.fetches.get(one, 0) for one in self.heard.isr if one != self.number]
        high = min([len(self.log), *others])
        if high <= self.high:
            return
        event = self.world.happens()
        for record in self.log[self.high : high]:
            if record.committed is None:
                record.committed, record.committed_state = event, self.heard
        self.high = high
        self.timeline.high_watermark(high, self.now())

    def fetch(self, leader: Broker, most: int) -> None:
        """Fetch from a leader of the same epoch: truncate what it does not have, then copy."""
        same = sum(1 for _ in _common(self.log, leader.log))
        event = self.world.happens()
        if same < len(self.log):
            leader.timeline.diverged(self.number, same, len(self.log), leader.now())
            self.lose(same)
            self.timeline.truncated(same, self.now())
        end = len(self.log)
        if leader.fetches.get(self.number) != end:
            leader.fetches[self.number] = end
            leader.timeline.replicated(self.number, end, leader.now())
            for record in self.log:
                record.fetched.setdefault(self.number, event)
            leader.advance()
        new = leader.log[end : end + most]
        if new:
            self.log += new
            for record in new:
                record.copied[self.number] = event
                self.epochs.assign(record.leader_epoch, record.offset)
            is_plain = not any(record.is_control or record.is_aborted for record in new)
            last, (producer_id, client) = end + len(new) - 1, COPIED
            self.timeline.appended(end, last, self.now(), client, producer_id, is_plain)
        high = min(leader.high, len(self.log))
        if high > self.high:
            self.high = high
            self.timeline.high_watermark(high, self.now())
        if self.start < leader.start <= self.high:
            self.remove_before(leader.start, None)

    def remove_before(self, start: int, reason: str | None) -> None:
        event = self.world.happens()
        if reason is not None:
            for record in self.log[self.start : start]:
                record.removed.append((event, reason))
        self.start = start
        self.epochs.truncate_from_start(start)
        # A segment with records after the start stays: a follower's may begin elsewhere than
        # the leader's.
        first = max(base for base in self.bases if base <= start)
        self.bases = [first, *(base for base in self.bases if base > first)]
        self.timeline.started_at(start, self.now(), reason or "")
        self.flush(all_of_them=True)


class World:
    """The brokers, the controller, the groups, and what is true."""

    def __init__(self, folder: Path, brokers: int, cap_bytes: int = 4000) -> None:
        self.folder = folder
        self.ms, self.seq = START_MS, 0
        self.producer_ahead_ms = 0
        self.checkpoint = ""
        """The pipeline's query id, "" for none in its commits."""
        self.reads_committed = False
        """Whether the pipeline says that it reads only what is committed."""
        self.positions: dict[str, int] = {}
        self.commits: list[tuple[Happened, str, int]] = []
        self.metadata: dict[str, str] = {}
        self.highest: dict[str, int] = {}
        """The largest offset that each group has committed."""
        self.committed_ms: dict[str, int] = {}
        """By the coordinator's clock."""
        self.cuts: list[Cut] = []
        self.epoch_starts: dict[int, int] = {}
        self.batch = self.delivered_to = self.version = 0
        self.pipeline_began = 1 << 62
        self.brokers: dict[int, Broker] = {}
        for number in range(1, brokers + 1):
            self.brokers[number] = Broker(self, number, cap_bytes)
        everyone = tuple(self.brokers)
        self.states: list[tuple[Happened, State]] = []
        self.decide(State(1, 0, everyone, 0))
        for broker in self.brokers.values():
            self.tell(broker)

    def happens(self) -> Happened:
        self.seq += 1
        return Happened(self.seq, self.ms)

    @property
    def is_cluster(self) -> bool:
        return len(self.brokers) > 1

    @property
    def state(self) -> State:
        return self.states[-1][1]

    def coordinator(self, group: str) -> Broker | None:
        numbers = sorted(self.brokers)
        return self.brokers.get(numbers[sum(group.encode()) % len(numbers)]) if numbers else None

    def decide(self, state: State) -> None:
        self.states.append((self.happens(), state))

    def tell(self, broker: Broker) -> None:
        """The broker hears of the controller's newest state."""
        if not broker.is_alive:
            return
        if self.is_cluster:
            broker.hear(self.state)
        else:
            # The only replica of a partition records no elections.
            broker.heard = self.state
            self.epoch_starts.setdefault(self.state.leader_epoch, len(broker.log))
            broker.advance()

    def leader(self) -> Broker | None:
        """Who leads as the controller says, and knows it."""
        broker = self.brokers.get(self.state.leader)
        is_told = broker is not None and broker.leads and broker.heard == self.state
        return broker if is_told else None

    def elect(self, leader: int, isr: tuple[int, ...]) -> None:
        now = self.state
        self.decide(State(leader, now.leader_epoch + 1, isr, now.partition_epoch + 1))

    def change_isr(self, isr: tuple[int, ...]) -> None:
        now = self.state
        self.decide(now._replace(isr=isr, partition_epoch=now.partition_epoch + 1))

    # The groups.

    def commit(
        self, group: str, offset: int, metadata: str | None = None, by: By = By.MEMBER
    ) -> None:
        """A group commits; its coordinator must live."""
        coordinator = self.coordinator(group)
        assert coordinator is not None
        passing = Passing(self.happens(), by, group not in self.positions)
        every = {id(record): record for broker in self.brokers.values() for record in broker.log}
        for record in every.values():
            if record.offset >= offset:
                record.past.discard(group)
            elif group not in record.past:
                record.past.add(group)
                record.read.setdefault(group, []).append(passing)
        self.commits.append((passing.at, group, offset))
        before = Before(self.positions.get(group, -1), self.metadata.get(group, ""))
        self.positions[group] = offset
        self.highest[group] = max(self.highest.get(group, 0), offset)
        self.metadata[group] = metadata or ""
        self.committed_ms[group] = coordinator.now()
        coordinator.timeline.committed(group, offset, metadata, coordinator.now(), before, by)

    def forget(self, group: str, reason: str) -> None:
        """The group's offset is removed."""
        coordinator = self.coordinator(group)
        assert coordinator is not None
        event = self.happens()
        for broker in self.brokers.values():
            for record in broker.log:
                record.past.discard(group)
                if group in record.read:
                    record.forgotten.setdefault(group, []).append((event, reason))
        before = Before(self.positions.pop(group), self.metadata.pop(group))
        coordinator.timeline.forgotten(group, coordinator.now(), reason, before)

    def deliver(self, leader: Broker, end: int, *, with_begin: bool) -> None:
        """A batch of the pipeline from where it stands to `end`."""
        begin = min(self.delivered_to, end)
        self.pipeline_began = min(self.pipeline_began, begin)
        batch, self.batch = self.batch, self.batch + 1
        self.version += 1
        event = self.happens()
        for record in leader.log[begin:end]:
            if not record.is_aborted:
                record.delivered.append(Delivery(event, batch, self.version))
        self.delivered_to = end
        begun = f'"from":{begin},' if with_begin else ""
        delta = f'"delta":{{"table":"{TABLE}","version":{self.version}}}'
        reads = ',"isolation":"read_committed"' if self.reads_committed else ""
        own = f'"id":"{self.checkpoint}",' if self.checkpoint else ""
        told = f'{{"ottla.pipeline":1,"query":"q",{own}{begun}"batch":{batch},{delta}{reads}}}'
        self.commit(PIPELINE_GROUP, end, told)

    def _committed(self, group: str) -> tuple[int, int]:
        coordinator = self.coordinator(group)
        assert coordinator is not None
        return self.committed_ms[group], coordinator.number

    # What is asked.

    def facts(self, broker: Broker, offset: int) -> Facts:
        """What the broker that leads would gather."""
        broker.flush(all_of_them=True)
        told: list[Step] = []
        for other in self.brokers.values():
            if other is not broker and other.is_alive:
                other.flush(all_of_them=True)
                some = about(other.files.read(offset), offset)
                told += [step._replace(broker=other.number) for step in some]
        record = broker.log[offset] if broker.start <= offset < len(broker.log) else None
        state = broker.heard
        assert state is not None
        return Facts(
            topic="t",
            partition=0,
            offset=offset,
            now_ms=broker.now(),
            broker_id=broker.number,
            partition_count=1,
            replica_count=len(self.brokers),
            start_offset=broker.start,
            end_offset=len(broker.log),
            high_watermark=broker.high,
            config=CONFIG,
            segments=_segments(broker),
            steps=tuple(dict.fromkeys((*broker.files.read(offset), *told))),
            opening=Opening(
                broker.timeline.opened_ms,
                broker.timeline.end_at_open,
                broker.timeline.high_at_open,
            ),
            positions={
                group: Position(at, self.metadata[group], -1, *self._committed(group))
                for group, at in self.positions.items()
            },
            location=_location(record, broker) if record else None,
            replicas=tuple(self.brokers),
            isr=state.isr,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            epoch_starts=[
                each for each in broker.epochs.entries if each.start_offset < len(broker.log)
            ],
            fetched=dict(broker.fetches),
            transactions=TransactionFacts(broker.high, was_aborted=record.is_aborted)
            if record
            else None,
        )


def _common(one: list[Written], other: list[Written]) -> list[Written]:
    found: list[Written] = []
    for mine, theirs in zip(one, other, strict=False):
        if mine is not theirs:
            break
        found.append(mine)
    return found


def _segments(broker: Broker) -> list[SegmentFacts]:
    ends = [*broker.bases[1:], max(len(broker.log), broker.bases[-1])]
    return [
        SegmentFacts(base, end, 1000, START_MS, number + 1 == len(ends), None)
        for number, (base, end) in enumerate(zip(broker.bases, ends, strict=True))
    ]


def _location(record: Written, broker: Broker) -> LogLocation:
    first, last = record.batch
    attributes = CONTROL_BIT if record.is_control else 0
    if record.is_control or record.is_aborted:
        attributes |= TRANSACTIONAL_BIT
    stamp, count = record.timestamp_ms, last - first + 1
    header = BatchHeader(
        *(first, 100, record.leader_epoch, 2, 0, attributes, last - first, stamp, stamp),
        *(record.producer_id, 0, 0 if record.producer_id >= 0 else -1, count),
    )
    found = RecordInBatch(Record(record.offset, stamp, b"k", b"v"), record.offset - first, 0, 9, 90)
    segment = next(one for one in _segments(broker) if record.offset < one.next_offset)
    return LogLocation(segment, "t-0", "0.log", "0.index", None, 0, header, found)
