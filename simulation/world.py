"""Runs a cluster of shipped brokers from a seed and a list of faults, and checks the result."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from faults.anomaly import Kind, Policy
from faults.checker import check
from faults.history import Epochs, Event, FinalCommitted, FinalRead

from simulation.broker import Broker
from simulation.cluster import COMPACTED, GO_ON, OFFSETS, TOPIC, WRITTEN, Cluster
from simulation.connection import NoAnswerError, RefusedError
from simulation.consumers import GROUP, Member
from simulation.disk import locks_by_folder
from simulation.either_members import either_member
from simulation.emptied_groups import EmptiedGroups
from simulation.epoch_members import EpochMember
from simulation.faults import FIRST_MS, LAST_MS, MAX_COUNT, Fault, at_pace, draw_faults, first_ms
from simulation.few_epochs import few_epochs
from simulation.journey_reads import Asked, ReadsSaid, commits_of
from simulation.journeys import check_journeys, spans_of
from simulation.log_clients import LogClients
from simulation.log_faults import draw_log_faults
from simulation.nemesis import Nemesis
from simulation.owners import OwnersWatch
from simulation.pace import Pace, pace_of
from simulation.replay import ReplayWatch
from simulation.replicas import content
from simulation.share_clients import ShareClients
from simulation.share_deletions import ShareDeletions
from simulation.share_faults import draw_share_faults
from simulation.share_topics import ShareTopics
from simulation.size import size_of
from simulation.streams_clients import StreamsClients
from simulation.streams_faults import draw_streams_faults
from simulation.transaction_faults import draw_transaction_faults
from simulation.transaction_watch import TransactionWatch
from simulation.transactional_clients import TransactionalClients
from simulation.violation import Violation
from simulation.workload import Workload

HEAL_MS: Final = LAST_MS + 1_000
"""In a full run."""
RECOVERS_WITHIN_MS: Final = 60_000
CATCHES_UP_WITHIN_MS: Final = 30_000
WRITTEN_PARTITIONS: Final = 2
FEW_EPOCHS: Final = 0.3
"""How often the epochs of a producer id are used up soon."""
MAX_BESIDE_LOGS: Final = 5
"""At most so many other faults beside those of logs."""
RESTS_WITHIN_S: Final = 8
WATCH_EVERY_S: Final = 0.7
MIN_WATCH_S: Final = 0.35
OF_GROUP: Final = frozenset({Kind.lost_commit, Kind.stale_generation, Kind.two_owners})
"""The anomalies that follow if `__consumer_offsets` lost committed records."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run. `digest` is the same in every run of the seed."""

    seed: int
    violation: str | None
    faults: tuple[Fault, ...]
    transcript: tuple[str, ...]
    digest: int
    callbacks: int
    acknowledged: int
    elections: int
    generations: int
    lost: int
    """Committed batches that an unclean election or lost disks removed, as allowed."""
    transactions: int
    """Committed ones."""
    gaps: int
    """How often a reader met a gap of the compacted topic."""
    shared: int
    """Records that members of the share group accepted."""
    assigned: int
    """How often members of the streams group were told tasks."""
    virtual_ms: int


class World:
    """A simulated cluster, its clients and its faults."""

    def __init__(
        self,
        seed: int,
        faults: Sequence[Fault] | None = None,
        *,
        transactions: bool = False,
        logs: bool = False,
        consumers: bool = False,
        conversions: bool = False,
        shares: bool = False,
        letters: bool = False,
        deletions: bool = False,
        streams: bool = False,
        pace: Pace | None = None,
    ) -> None:
        """Without `faults` and `pace`, those of the seed; faults that are given happen as they are.
        `transactions`: with transactional clients beside the others. `logs`: with faults of logs
        and their disks, and the clients for them; a mode of its own, so that a seed without it
        keeps its run. `consumers`: the group's members speak the consumer protocol (KIP-848).
        `conversions`: each speaks it or the classic one. `shares`: with a share group (KIP-932)
        beside the others. `letters`: that with dead letters (KIP-1191). `deletions`: with another
        one beside it that is deleted again and again, and one whose topic is. `streams`: with a
        streams group (KIP-1071)."""
        plan = Random(f"{seed} plan")
        self.seed = seed
        pace = pace_of(seed) if pace is None else pace
        shares = shares or letters or deletions
        size = size_of(seed, pace, transactions=transactions, logs=logs)
        self.cluster = Cluster(seed, plan, pace, size, logs=logs, shares=shares, streams=streams)
        member: Callable[..., Member] = EpochMember if consumers else Member
        self.workload = Workload(self.cluster, plan, either_member if conversions else member)
        self.shares = ShareClients(self.cluster, self.workload, letters=letters) if shares else None
        of_deletions = (ShareDeletions, ShareTopics) if deletions else ()
        self.deletions = [each(self.cluster) for each in of_deletions]
        self.streams = StreamsClients(self.cluster) if streams else None
        self._watches_group = consumers or conversions or shares or streams
        if conversions:
            workload, loop = self.workload, self.cluster.loop
            emptied = EmptiedGroups(
                GROUP, workload.by_member, lambda: loop.now_ms, workload.is_deposed
            )
            self.cluster.broker_stepped = emptied.stepped
        if faults is None:
            faults = draw_faults(
                plan, self.cluster.count, max_count=MAX_BESIDE_LOGS if logs else MAX_COUNT
            )
            if logs:
                more = draw_log_faults(Random(f"{seed} log faults"), self.cluster.count)
                faults = (*faults, *more)
            if transactions:
                more = draw_transaction_faults(
                    Random(f"{seed} transaction faults"), self.cluster.count
                )
                faults = (*faults, *more)
            if shares:
                more = draw_share_faults(Random(f"{seed} share faults"), self.cluster.count)
                faults = (*faults, *more)
            if streams:
                more = draw_streams_faults(Random(f"{seed} streams faults"), self.cluster.count)
                faults = (*faults, *more)
            faults = at_pace(faults, pace)
        self.faults = tuple(faults)
        has_writers = transactions or logs
        self.transactional = TransactionalClients(self.cluster) if has_writers else None
        writers = None if self.transactional is None else self.transactional.writers
        self.of_logs = LogClients(self.cluster, self.workload) if logs else None
        self.nemesis = Nemesis(
            self.cluster, self.workload, writers, self.of_logs, self.shares, self.streams
        )
        self.has_few_epochs = transactions and Random(f"{seed} epochs").random() < FEW_EPOCHS

    def run(self) -> Outcome:
        """Run from the first start to the last check."""
        cluster = self.cluster
        violation = None
        cluster.open()
        try:
            with ExitStack() as stack:
                for each in (cluster.synced, cluster.page_cache, cluster.full_disks):
                    stack.enter_context(each.watching())
                stack.enter_context(locks_by_folder())
                if self.shares is not None:
                    stack.enter_context(self.shares.watching())
                if self.streams is not None:
                    stack.enter_context(self.streams.watching())
                if self.has_few_epochs:
                    stack.enter_context(few_epochs())
                cluster.loop.run(self._main)
            if cluster.found:
                violation = cluster.found[0]
        except Violation as error:
            violation = str(error)
        except AssertionError as error:
            violation = f"assertion: {error}"
        finally:
            cluster.close()
            _KEPT.append(self)
        if violation is not None:
            cluster.note(f"VIOLATION {violation}")
        accounts = cluster.invariants.accounts.values()
        return Outcome(
            seed=self.seed,
            violation=violation,
            faults=self.faults,
            transcript=tuple(cluster.transcript),
            digest=cluster.digest,
            callbacks=cluster.loop.callbacks,
            acknowledged=sum(each.acknowledged for each in self.workload.producers),
            elections=sum(len(each.leaders) for each in accounts),
            generations=self.workload.generations,
            lost=sum(len(each.lost) for each in accounts),
            transactions=0 if self.transactional is None else self.transactional.committed,
            gaps=0 if self.of_logs is None else self.of_logs.gaps,
            shared=0 if self.shares is None else self.shares.ledger.accepted,
            assigned=0 if self.streams is None else self.streams.ledger.told_count,
            virtual_ms=cluster.loop.now_ms,
        )

    async def _main(self) -> None:
        cluster, loop = self.cluster, self.cluster.loop
        for broker in cluster.brokers.values():
            loop.call_later(loop.random.random() * 0.1, broker.start)
        config = {"unclean_leader_election_enable": "true"} if cluster.is_unclean else {}
        await cluster.operator.create(TOPIC, cluster.partitions, cluster.factor, **config)
        self.workload.start()
        if self.shares is not None:
            await self.shares.start()
        for each in self.deletions:
            await each.start()
        if self.streams is not None:
            await self.streams.start()
        if self.transactional is not None:
            if cluster.size.writers:
                config = cluster.settings_of_topic() if self.of_logs is not None else {}
                await cluster.operator.create(WRITTEN, WRITTEN_PARTITIONS, cluster.factor, **config)
                cluster.written_partitions = WRITTEN_PARTITIONS
            self.transactional.start()
            if self.of_logs is not None:
                await self.of_logs.start()
        if self.transactional is not None or self._watches_group:
            cluster.spawn(self._watch())
        faults = asyncio.ensure_future(self.nemesis.run(self.faults))
        heal_ms = first_ms(cluster.pace) + cluster.pace.ms(HEAL_MS - FIRST_MS)
        await asyncio.sleep(max(0.0, heal_ms / 1000 - loop.time()))
        await faults
        self.nemesis.heal()
        await self._check_forwarding()
        for producer in self.workload.producers:
            producer.stopping = True
        if self.transactional is not None:
            self.transactional.stop()
        if self.of_logs is not None:
            self.of_logs.stop()
        await self._until(self._have_producers_stopped)
        if self.transactional is not None:
            # The coordinators may still have to end what dead producers began.
            await self.transactional.settle()
            self.transactional.judge()
        if self.shares is not None:
            await self.shares.settle()
        for each in self.deletions:
            await each.settle()
        if self.streams is not None:
            await self.streams.settle()
        await self._until(self._are_replicas_equal)
        await self._check()

    async def _watch(self) -> None:
        """Look at the coordinators to the end of the run."""
        cluster = self.cluster
        brokers = list(cluster.brokers.values())
        watches = TransactionWatch(cluster), ReplayWatch(brokers), OwnersWatch(brokers)
        while True:
            await asyncio.sleep(max(MIN_WATCH_S, cluster.pace.s(WATCH_EVERY_S)))
            try:
                for each in watches:
                    each.check()
            except Violation as error:
                cluster.fail(str(error))

    # The end.

    async def _until(self, is_at_rest: Callable[[], bool]) -> None:
        """Wait for a time; what is not at rest then, the checks show."""
        loop = self.cluster.loop
        until_s = loop.time() + RESTS_WITHIN_S
        while not is_at_rest() and loop.time() < until_s:
            await asyncio.sleep(self.cluster.pace.s(0.2))

    def _have_producers_stopped(self) -> bool:
        others = [each for each in (self.transactional, self.of_logs) if each is not None]
        return all(producer.has_stopped for producer in self.workload.producers) and all(
            each.have_stopped for each in others
        )

    def _are_replicas_equal(self) -> bool:
        for name in self.cluster.states():
            topic, _, index = name.rpartition("-")
            copies = [
                partition_of(each, topic, int(index)) for each in self.cluster.brokers.values()
            ]
            logs = [each.log for each in copies if each is not None]
            marks = [each.high_watermark for each in copies if each is not None]
            if topic not in GO_ON and len({*marks, *(log.end_offset for log in logs)}) > 1:
                return False
        return True

    async def _check_forwarding(self) -> None:
        """Check in the recovered cluster that every broker reaches the controller.

        A write that failed while a disk was full may end its broker only now. That broker is
        started and asked again.
        """
        brokers = self.cluster.brokers.values()
        while True:
            await self._recovered()
            processes = [broker.process for broker in brokers]
            try:
                return await self.cluster.operator.check_forwarding(TOPIC)
            except NoAnswerError as error:
                if processes == [broker.process for broker in brokers]:
                    raise Violation(
                        f"a request for the controller got no answer: {error}"
                    ) from None

    async def _recovered(self) -> None:
        """Wait until every broker is back and every partition whole, and producers go on."""
        cluster, producers = self.cluster, self.workload.producers
        before = [producer.acknowledged for producer in producers]
        committed = [] if self.transactional is None else self.transactional.progress
        others = [] if self.of_logs is None else self.of_logs.progress
        until_ms = cluster.loop.now_ms + RECOVERS_WITHIN_MS
        while True:
            await asyncio.sleep(cluster.pace.s(0.3))
            for broker in cluster.brokers.values():
                broker.start()
            await self._give_up_what_is_lost()
            why = cluster.unhealed()
            if why is None and cluster.loop.now_ms <= cluster.stalled_until_ms:
                why = "a message is still stalled"
            if why is None and all(
                producer.acknowledged > count
                for producer, count in zip(producers, before, strict=False)
            ):
                now = [] if self.of_logs is None else self.of_logs.progress
                if not all(count > known for count, known in zip(now, others, strict=True)):
                    why = "a producer of another topic gets nothing acknowledged"
                elif self.transactional is None or self.transactional.have_gone_on(committed):
                    return
                else:
                    why = "a transactional id commits nothing"
            if cluster.loop.now_ms > until_ms:
                raise Violation(
                    f"not recovered {RECOVERS_WITHIN_MS // 1000} s after the last fault: "
                    f"{why or 'a producer gets nothing acknowledged'}"
                )

    async def _give_up_what_is_lost(self) -> None:
        """Where no in-sync replica has its records any more, any live broker is elected."""
        cluster = self.cluster
        for name, state in cluster.states().items():
            topic, _, index = name.rpartition("-")
            account = cluster.invariants.account(topic, int(index))
            if (
                account is not None
                and account.is_forgiven
                and state is not None
                and state["leader"] == -1
            ):
                cluster.gave_up[name] = None
                await cluster.operator.elect({topic: [int(index)]}, unclean=True)

    async def _check(self) -> None:
        cluster, workload = self.cluster, self.workload
        ends, asked, searched = {}, [], []
        for name, state in cluster.states().items():
            assert state is not None
            topic, _, index = name.rpartition("-")
            partition = check_replicas(cluster, topic, int(index), state["leader"])
            if topic != TOPIC:
                continue
            ends[int(index)] = partition.high_watermark
            await self._read_all(int(index), partition)
            spans = spans_of(workload.history.common, int(index))
            leader = cluster.brokers[state["leader"]]
            search = cluster, topic, int(index), leader, partition, spans
            asked += await check_journeys(*search)
            searched.append(search)
        cluster.invariants.ended()
        if self.of_logs is not None and self.nemesis.of_logs is not None:
            self.nemesis.of_logs.check_incarnations()
            await self.of_logs.keyed.judge()
        await self._group_catches_up(ends)
        policy = Policy.unclean if cluster.is_unclean else Policy.strict
        self._judge(workload.history.of_readers(), policy)
        self._judge(workload.history.of_group(), policy)
        for search in searched:
            asked += await check_journeys(*search, again=" again")
        await self._until(lambda: not workload.is_committing)
        self._judge_reads(asked)

    def _judge_reads(self, asked: list[Asked]) -> None:
        """Raises Violation for a journey that says of the group what is not true."""
        cluster, events = self.cluster, [event for _, event in self.workload.history.group]
        for one in asked:
            said = ReadsSaid(
                one,
                commits_of(events, one.partition),
                has_clocks=not cluster.has_set_clocks,
                may_lose_offsets=bool(cluster.invariants.forgiven(OFFSETS)),
            )
            wrong = said.untrue(GROUP)
            if wrong is not None:
                message = f"{one.topic}-{one.partition} {one.said['offset']}"
                raise Violation(f"the journey of {message} says of the group: {wrong}")

    async def _read_all(self, index: int, partition: Any) -> None:
        reader = self.workload.reader(0, index, lambda event: None)
        end = partition.high_watermark
        while reader.offset < end:
            if not await reader.poll():
                await asyncio.sleep(0.1)
        now_ms = self.cluster.loop.now_ms
        self.workload.common(FinalRead(now_ms, index, 0, end, tuple(reader.records)))
        starts = tuple((each.epoch, each.start_offset) for each in partition.log.epochs.entries)
        self.workload.common(Epochs(now_ms, index, starts))

    async def _group_catches_up(self, ends: dict[int, int]) -> None:
        """Wait until the group has committed all there is.

        A group whose records may be lost may keep an old assignment: its static members get their
        places back, and the leader is told to assign nothing (KIP-814).
        """
        cluster = self.cluster
        asker = Member(
            0,
            TOPIC,
            cluster.addresses,
            lambda event: None,
            cluster.now_ms,
            Random(0),
            lambda: cluster.partitions,
            self.workload,
            cluster.pace,
        )
        until_ms = cluster.loop.now_ms + CATCHES_UP_WITHIN_MS
        committed: dict[int, int] = {}
        while committed != ends:
            if cluster.loop.now_ms > until_ms:
                if cluster.invariants.forgiven(OFFSETS):
                    break
                raise Violation(
                    f"the group has not caught up after {CATCHES_UP_WITHIN_MS // 1000} s: "
                    f"it committed {committed} of {ends}"
                )
            await asyncio.sleep(cluster.pace.s(0.3))
            try:
                committed = await asker.committed(tuple(ends))
            except (NoAnswerError, RefusedError):
                asker.forget_coordinator()
        self.workload.by_member(FinalCommitted(cluster.loop.now_ms, tuple(committed.items())))

    def _judge(self, events: list[Event], policy: Policy) -> None:
        """Hold a history against what must always hold. Raises Violation."""
        invariants = self.cluster.invariants
        forgiven = invariants.forgiven(TOPIC)
        is_group_forgiven = bool(invariants.forgiven(OFFSETS))
        for each in check(events, policy).forbidden:
            if each.partition in forgiven or (is_group_forgiven and each.kind in OF_GROUP):
                continue
            raise Violation(f"{each.kind.value}: {TOPIC}-{each.partition}: {each.what}")


def check_replicas(cluster: Cluster, topic: str, index: int, leader: int) -> Any:
    """Return the leader's partition once all replicas are found equal. Raises Violation."""
    led = partition_of(cluster.brokers[leader], topic, index)
    if led is None:
        raise Violation(f"broker {leader} leads {topic}-{index} and does not have it")
    if topic in COMPACTED:
        # Each replica compacts by itself; what readers see is judged.
        return led
    start = max(
        led.log.start_offset,
        *(
            copy.log.start_offset
            for broker in cluster.brokers.values()
            if (copy := partition_of(broker, topic, index)) is not None
        ),
    )
    expected = content(led.log, start)
    for number, broker in cluster.brokers.items():
        copy = partition_of(broker, topic, index)
        if copy is None or number == leader:
            continue
        if copy.log.end_offset != led.log.end_offset and topic not in GO_ON:
            raise Violation(
                f"{topic}-{index} ends at {copy.log.end_offset} on broker {number} and at "
                f"{led.log.end_offset} on its leader, broker {leader}"
            )
        found = content(copy.log, start)
        # The group goes on committing.
        same = expected.startswith(found) or found.startswith(expected)
        if found != expected and not (topic in GO_ON and same):
            raise Violation(f"{topic}-{index} differs on broker {number} from its leader, {leader}")
    return led


def partition_of(broker: Broker, topic: str, index: int) -> Any:
    """A broker's copy of a partition; None where it has none, or is down."""
    return None if broker.node is None else broker.node.partitions.get(topic, index)


_KEPT: Final[list[World]] = []
"""Every run of this process: freed, coroutines of dead processes would run their `finally`, and
what these do and log would be taken for another seed's. `__main__` ends its workers in time."""


def run(
    seed: int,
    faults: Sequence[Fault] | None = None,
    *,
    transactions: bool = False,
    logs: bool = False,
    consumers: bool = False,
    conversions: bool = False,
    shares: bool = False,
    letters: bool = False,
    deletions: bool = False,
    streams: bool = False,
    pace: Pace | None = None,
) -> Outcome:
    """One seed."""
    modes = {
        "transactions": transactions,
        "logs": logs,
        "consumers": consumers,
        "conversions": conversions,
        "shares": shares,
        "letters": letters,
        "deletions": deletions,
        "streams": streams,
    }
    return World(seed, faults, pace=pace, **modes).run()


def own_process() -> None:
    """Called once in a process that runs only seeds, before them."""
    # What a run leaves is kept anyway, and looking for garbage in it takes a tenth of the time.
    gc.disable()
    end_at_once()


def end_at_once(code: int = 0) -> None:
    """Called once in a process: it will not run what dead brokers left unfinished, at its end.

    `code` is the exit code, if nothing else ends the process first.
    """
    atexit.register(_end, code)


def _end(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
