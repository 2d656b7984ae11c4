"""One replica of a partition: the pure `Leader` or `Follower` over a log in memory.

What the real partition does around the deciders (checking the epoch, finding where a follower's log
parts from this one, waking who waits) is told again here, in few lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from ottla.controller.image import NO_LEADER, PartitionState
from ottla.protocol.errors import ErrorCode
from ottla.replication.follower import (
    Answer,
    Append,
    AskOffsets,
    BackOff,
    Decision,
    Follower,
    Question,
    Truncate,
    TruncateFully,
)
from ottla.replication.leader import Follower as Fetcher
from ottla.replication.leader import InSyncChange, Leader, leaves_open
from simulation.batches import batch_of, entry_of
from simulation.memory_log import Entry, MemoryLog, Value
from simulation.messages import Fetched, Produced, Wanted

if TYPE_CHECKING:
    from simulation.broker import Broker
    from simulation.network import Reply

LAG_MAX_MS = 1500
FETCH_MOST = 20
PROPOSE_AGAIN_MS = 50
"""Records in one answer: few, so that followers are often behind."""


class Waiting:
    """A producer that waits for its record to be committed."""

    def __init__(self, offset: int, epoch: int, reply: Reply) -> None:
        self.offset = offset
        self.epoch = epoch
        self.reply = reply


class Replica:
    """See the module's text."""

    def __init__(self, broker: Broker, name: str, topic_id: UUID, log: MemoryLog) -> None:
        self.broker = broker
        self.name = name
        self.index = int(name.rpartition("-")[2])
        self.topic_id = topic_id
        self.log = log
        self.min_isr = broker.world.min_isr
        self.high_watermark = min(broker.disk.high_watermarks.get(name, 0), log.end_offset)
        self.state: PartitionState | None = None
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self.waiting: list[Waiting] = []
        self.backs_off_until_ms = 0

    @property
    def epoch(self) -> int:
        """The leader epoch that this replica knows."""
        return -1 if self.state is None else self.state.leader_epoch

    # Roles.

    def update(self, state: PartitionState) -> None:
        """The controller's word."""
        if self.state is not None and state.leader_epoch < self.epoch:
            return
        now_ms, broker = self.broker.schedule.now_ms, self.broker
        newer = self.state is None or state.leader_epoch > self.epoch
        if state.leader == broker.number:
            self.follower = None
            if self.leader is None:
                self._lead(state)
            else:
                self.leader.update(state, end_offset=self.log.end_offset, now_ms=now_ms)
                if newer:
                    self.log.assign(state.leader_epoch, self.log.end_offset)
                    self._told_leads(state)
            self.state = self.leader.state if self.leader is not None else state
            self.advance()
            return
        known, self.state = self.state, state
        if known is not None and known.leader == state.leader and not newer:
            return
        self._resign()
        self.follower = None
        if state.leader != NO_LEADER and broker.number in state.replicas:
            self.follower = self.broker.world.deciders.follower(state.leader, state.leader_epoch)
            self.backs_off_until_ms = 0

    def _lead(self, state: PartitionState) -> None:
        broker, log = self.broker, self.log
        log.assign(state.leader_epoch, log.end_offset)
        self.leader = broker.world.deciders.leader(
            self.topic_id,
            self.index,
            state,
            end_offset=log.end_offset,
            high_watermark=self.high_watermark,
            now_ms=broker.schedule.now_ms,
            lag_max_ms=LAG_MAX_MS,
            live_epoch=broker.live_epoch,
        )
        self._told_leads(state)

    def _told_leads(self, state: PartitionState) -> None:
        number = self.broker.number
        self.broker.world.note(
            f"{number} leads {self.name} in epoch {state.leader_epoch} from "
            f"{self.log.end_offset}, isr {state.isr}"
        )
        self.broker.world.ledger.leads(number, self, state.leader_epoch)

    def drop(self) -> None:
        """This broker holds the replica no more."""
        self.follower = None
        self._resign()

    def _resign(self) -> None:
        self.leader = None
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each.reply(Produced(ErrorCode.not_leader_or_follower))

    # As leader.

    def produce(self, value: Value, acks: int, reply: Reply) -> None:
        """Append one value; answered at once, or when it is committed."""
        leader, log = self.leader, self.log
        if leader is None:
            reply(Produced(ErrorCode.not_leader_or_follower))
            return
        if acks != 1 and len(leader.state.isr) < self.min_isr:
            reply(Produced(ErrorCode.not_enough_replicas))
            return
        offset = log.find(value) if value.idempotent else None
        if offset is None:
            last = log.last_sequence(value.producer)
            if value.idempotent and last >= 0 and value.sequence != last + 1:
                reply(Produced(ErrorCode.out_of_order_sequence_number))
                return
            offset = log.end_offset
            log.append([Entry(leader.state.leader_epoch, value)])
        if acks == 1:
            reply(Produced(ErrorCode.none, offset, self.epoch, self.topic_id))
        else:
            self.waiting.append(Waiting(offset, self.epoch, reply))
        self.advance()
        self.broker.replicas.wake()

    def advance(self) -> None:
        """Raise the high watermark if the in-sync replicas allow it; answer who waited."""
        leader, now_ms = self.leader, self.broker.schedule.now_ms
        assert leader is not None
        world = self.broker.world
        if leader.advance(self.log.end_offset, now_ms, self.min_isr):
            self.high_watermark = leader.high_watermark
            self.broker.disk.high_watermarks[self.name] = self.high_watermark
            world.ledger.leader_committed(
                self.broker.number, self, leader.state.leader_epoch, self.high_watermark
            )
            self.broker.replicas.wake()
        done = [each for each in self.waiting if each.offset < self.high_watermark]
        self.waiting = [each for each in self.waiting if each.offset >= self.high_watermark]
        enough = len(leader.state.isr) >= self.min_isr
        for each in done:
            code = ErrorCode.none if enough else ErrorCode.not_enough_replicas_after_append
            each.reply(Produced(code, each.offset, leader.state.leader_epoch, self.topic_id))

    def fetched_by(self, replica: int, broker_epoch: int, wanted: Wanted) -> Fetched:
        """A follower's fetch: what it holds, and what it gets."""
        leader, log = self.leader, self.log
        if leader is None:
            return Fetched(ErrorCode.not_leader_or_follower)
        if wanted.leader_epoch != leader.state.leader_epoch:
            older = wanted.leader_epoch < leader.state.leader_epoch
            return Fetched(
                ErrorCode.fenced_leader_epoch if older else ErrorCode.unknown_leader_epoch
            )
        if wanted.last_fetched_epoch >= 0:
            epoch, end = log.end_of(wanted.last_fetched_epoch)
            if epoch < 0:
                return Fetched(ErrorCode.offset_out_of_range)
            if epoch < wanted.last_fetched_epoch or end < wanted.offset:
                return Fetched(ErrorCode.none, (), self.high_watermark, (epoch, end))
        if wanted.offset > log.end_offset:
            return Fetched(ErrorCode.offset_out_of_range)
        fetcher = Fetcher(replica, broker_epoch)
        now_ms = self.broker.schedule.now_ms
        known = leader.fetched(fetcher, wanted.offset, 0, end_offset=log.end_offset, now_ms=now_ms)
        if not known:
            return Fetched(ErrorCode.not_leader_or_follower)
        self.advance()
        if leader.may_join(replica):
            self.propose()
        entries = tuple(log.entries[wanted.offset : wanted.offset + FETCH_MOST])
        return Fetched(ErrorCode.none, entries, self.high_watermark)

    def propose(self) -> None:
        """Ask the controller for another in-sync set, if it is time to."""
        leader = self.leader
        if leader is None:
            return
        change = leader.in_sync_change(self.log.end_offset, self.broker.schedule.now_ms)
        if change is None:
            return
        self.broker.world.note(
            f"{self.broker.number} proposes for {self.name} isr {change.isr} "
            f"(epoch {change.leader_epoch}.{change.partition_epoch})"
        )
        self.broker.propose(change, lambda code, state: self._answered(change, code, state))

    def _answered(
        self, change: InSyncChange, code: ErrorCode, state: PartitionState | None
    ) -> None:
        leader = self.leader
        if leader is None or leader.state.leader_epoch != change.leader_epoch:
            return
        if leader.answered(code, state, change):
            self.state = leader.state
            self.advance()
        elif leaves_open(code):
            self.broker.after(PROPOSE_AGAIN_MS, self.propose)

    # As follower.

    def asks(self) -> Question | None:
        """What to ask the leader now."""
        if self.follower is None or self.broker.schedule.now_ms < self.backs_off_until_ms:
            return None
        return self.follower.asks(LogView(self.log))

    def answered(self, asked: Question, fetched: Fetched) -> bool:
        """Do what the decider says; True if the leader is to be asked for its log's ends."""
        if self.follower is None:
            return False
        batches = [
            batch_of(asked.fetch_offset + number, entry)
            for number, entry in enumerate(fetched.entries)
        ]
        answer = Answer(
            fetched.code, fetched.high_watermark, 0, fetched.diverging, b"".join(batches)
        )
        decision = self.follower.answered(asked, answer, LogView(self.log))
        self.carry_out(decision)
        return isinstance(decision, AskOffsets)

    def ends_answered(self, asked: Question, end_offset: int) -> None:
        """The leader's log goes from 0 to `end_offset`."""
        if self.follower is not None and self.follower.asks(LogView(self.log)) == asked:
            self.carry_out(self.follower.offsets_answered(0, end_offset, LogView(self.log)))

    def carry_out(self, decision: Decision) -> None:
        """Append or truncate."""
        log = self.log
        match decision:
            case Append(_, headers, high_watermark):
                log.append([entry_of(header) for header in headers])
                reached = min(high_watermark, log.end_offset)
                if reached > self.high_watermark:
                    self.high_watermark = reached
                    self.broker.disk.high_watermarks[self.name] = reached
                    self.broker.world.ledger.follower_committed(
                        self.broker.number, self, self.epoch, reached
                    )
            case Truncate(offset) | TruncateFully(offset):
                dropped = log.truncate_to(offset)
                if dropped:
                    self.broker.world.note(
                        f"{self.broker.number} drops {dropped} of {self.name} from {offset} on"
                    )
                self.high_watermark = min(self.high_watermark, log.end_offset)
                self.broker.disk.high_watermarks[self.name] = self.high_watermark
            case BackOff():
                self.backs_off_until_ms = self.broker.schedule.now_ms + 100


class LogView:
    """A log in memory as the deciders see one."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    @property
    def start_offset(self) -> int:
        """Nothing is ever deleted here."""
        return 0

    @property
    def end_offset(self) -> int:
        """The offset behind the last record."""
        return self._log.end_offset

    @property
    def epochs(self) -> LogView:
        """Itself: it has the epochs too."""
        return self

    @property
    def latest(self) -> int:
        """The latest epoch."""
        return self._log.starts[-1][0] if self._log.starts else -1

    def epoch_of(self, offset: int) -> int:
        """The epoch of the record at `offset`."""
        return self._log.epoch_of(offset)

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """As `LeaderEpochs.end_of`."""
        assert end_offset == self._log.end_offset
        return self._log.end_of(epoch)
