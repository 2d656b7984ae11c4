"""The loop: reads the source, writes transactions at the target, follows the group's assignment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Final

from ottla.client.admin.offsets import end_offsets, first_offsets, stable_offsets
from ottla.client.errors import RetriableError
from ottla.client.topic_partition import TopicPartition
from ottla.messaging.librdkafka import LibrdkafkaError
from ottla.mirroring import events
from ottla.mirroring.assignment import Assignment
from ottla.mirroring.clusters import Side
from ottla.mirroring.events import Event, Tell
from ottla.mirroring.group_member import GroupMember
from ottla.mirroring.group_offsets import Translated
from ottla.mirroring.identity import RecreatedError, check_source, check_target
from ottla.mirroring.keeper import Keeper
from ottla.mirroring.lost_positions import LostPositions
from ottla.mirroring.open_transaction import OpenTransaction
from ottla.mirroring.patterns import Patterns
from ottla.mirroring.progress import Progress
from ottla.mirroring.share import Share
from ottla.mirroring.source_end import SourceEnd
from ottla.mirroring.source_reader import News, SourceReader
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.target_producer import TargetProducer, TransactionFailed
from ottla.mirroring.target_writer import TargetWriter
from ottla.mirroring.topic_plan import TopicPlan
from ottla.wording.errors import ReportedError

POLL_S: Final = 0.05
MAX_FAILURES: Final = 5
"""Transactions that fail one after the other."""
FAILED_PAUSE_S: Final = 1.0
LOOK_EVERY_S: Final = 0.5
MAX_SWITCHES: Final = 10
"""Looks at a group that `switch` moves, and that has read on at each."""
NEAR_OFFSETS: Final = 100
"""A partition that is so near to its end has caught up: behind its last record there may be
markers, which are offsets without a record.
"""


class MirrorError(ReportedError):
    """Nothing can be mirrored."""


class Mirror:
    """`begin`, `run`, then `switch` or `settle_groups`, and `close` in any case."""

    def __init__(
        self,
        spec: MirrorSpec,
        source: Side,
        target: Side,
        tell: Tell,
        *,
        progress_every_s: float = 5.0,
    ) -> None:
        """Raises PatternError."""
        self._spec = spec
        self._sides = source, target
        self._tell = self._noting(tell)
        self._progress_every_s = progress_every_s
        patterns = Patterns(spec)
        self._source = source.client()
        self._target = target.client()
        self._end = SourceEnd(spec, self._source, self._target, self._tell)
        self._lost = LostPositions(target, self._target, spec, self._tell)
        self.keeper = Keeper(spec, source, target, patterns, self._tell)
        self._ending = ExitStack()
        self._ending.callback(self._source.close)
        self._ending.callback(self._target.close)
        self._ending.callback(self.keeper.end)
        self._reader: SourceReader
        self._member: GroupMember
        self._assignment: Assignment
        self._producer: TargetProducer
        self._writer: TargetWriter
        self._share = Share()
        self._plan = TopicPlan()
        self._subscribed: frozenset[str] = frozenset()
        self._out: set[tuple[str, str | None]] = set()
        """Topics that are not mirrored on, with the source's id: names at the target."""
        self._has_changed = False
        self._has_joined = False
        """The group has said, once at least, which partitions are this instance's."""
        self._one_by_one = False
        self._failures = 0
        self._open = OpenTransaction(spec.commit_every_s)
        self._replaced: set[TopicPartition] = set()
        """Those where the source has records that it had not when they were read."""
        self.progress = Progress(time.monotonic())
        self.losses = 0
        """Events that mean that the target lacks something."""
        self.source_cluster = ""

    def _noting(self, tell: Tell) -> Tell:
        def noted(event: Event) -> None:
            if event.kind in events.LOSSES:
                self.losses += 1
            tell(event)

        return noted

    def _note_change(self) -> None:
        self._has_changed = self._has_joined = True

    def begin(self) -> TopicPlan:
        """Makes the topics, and joins the group. Raises ClientError, LibrdkafkaError,
        RejectedSettingsError and MirrorError.
        """
        with self._source.asked():
            self.source_cluster = str(self._source.metadata([]).cluster_id)
        plan = self.keeper.begin()
        if not plan.mirrored and plan.refused:
            name, reason = min(plan.refused.items())
            raise MirrorError(f"nothing to mirror: topic {name!r}: {reason}")
        if not plan.mirrored:
            self._tell(Event(events.WAITING, "No topic of the source matches yet."))
        source, target = self._sides
        self._reader = SourceReader(source)
        self._ending.callback(self._reader.close)
        self._member = GroupMember(self._spec, target, self._note_change)
        self._ending.callback(self._member.close)
        self._producer = TargetProducer(self._spec, target, self._member)
        self._producer.begin()
        self._ending.callback(self._producer.close)
        self._writer = TargetWriter(self._spec, self._producer)
        self._assignment = Assignment(
            self._source,
            self._target,
            self._member,
            self._writer,
            self._lost,
            self._share,
            self._tell,
            self.source_cluster,
        )
        self._follow_plan(plan)
        self.keeper.start()
        return plan

    def ends(self) -> dict[TopicPartition, int]:
        """Where the source ends now, by partition at the target."""
        partitions = {
            TopicPartition(topic.name, index): TopicPartition(name, index)
            for name, topic in self._plan.mirrored.items()
            for index in range(topic.partitions)
        }
        with self._source.asked():
            ends = stable_offsets(self._source, partitions)
        return {partitions[each]: at for each, at in ends.items()}

    def run(
        self, is_stopped: Callable[[], bool], until: Mapping[TopicPartition, int] | None = None
    ) -> bool:
        """Mirrors until it is stopped; or until these offsets of the source, then it returns True.
        Raises ClientError, LibrdkafkaError and MirrorError.
        """
        progress_s = self.progress.began_s + self._progress_every_s
        look_s = 0.0
        while not is_stopped():
            self._turn()
            now_s = time.monotonic()
            if now_s >= progress_s:
                progress_s = now_s + self._progress_every_s
                self._tell(self.state(now_s))
            if until is not None and now_s >= look_s:
                look_s = now_s + LOOK_EVERY_S
                if self._has_reached(until):
                    return True
        self._finish_transaction()
        return False

    def state(self, now_s: float) -> Event:
        """The progress with the lag."""
        self.progress.partitions = len(self._share.committed)
        self.progress.lag = 0
        for each, at in self._share.next.items():
            end = self._reader.end_seen(self._share.source_of(each))
            self.progress.lag += max(0, (end or 0) - at)
        return self.progress.event(now_s)

    def _turn(self) -> None:
        try:
            self._member.poll(0)
            self._producer.check()
            self.keeper.looks_after_groups = self._member.looks_after_groups
            self.keeper.check()
            if self.keeper.plan is not self._plan:
                self._follow_plan(self.keeper.plan)
            if self._has_changed:
                self._follow_assignment()
            if self._assignment.is_waiting and self._assignment.find(self._plan, self._out):
                self._reader.assign(self._share.next_offsets())
            read = self._reader.read(self._open.wait_s(time.monotonic(), POLL_S))
            self._add(read.records)
            self._take_news(read.news)
            now_s = time.monotonic()
            if self._open.is_time(now_s, is_all=read.is_all, is_near_end=self._is_near_end):
                self._commit()
        except TransactionFailed as failed:
            self._try_again(failed)
        except RetriableError as error:
            self._try_again(TransactionFailed(error.message))
        except RecreatedError as error:
            self._leave_out(error.names)

    def _is_near_end(self, partition: TopicPartition) -> bool:
        end = self._reader.end_seen(self._share.source_of(partition))
        return end is not None and end - self._share.next[partition] <= NEAR_OFFSETS

    # Which partitions

    def _follow_plan(self, plan: TopicPlan) -> None:
        self._plan = plan
        topics = frozenset(plan.mirrored)
        if topics != self._subscribed:
            self._subscribed = topics
            self._member.subscribe(sorted(topics))
        elif self._assignment.missing(plan, self._out) - self._assignment.waiting:
            # Partitions that the target had before the source.
            self._has_changed = True

    def _follow_assignment(self) -> None:
        """The group has given or taken partitions: begins at the committed positions."""
        self._has_changed = False
        self._abort()
        self._share.clear()
        self._reader.assign({})
        self._assignment.begin(self._plan, self._out)

    # Records

    def _add(self, records: list[Any]) -> None:
        """Adds them to the transaction, which is committed and followed by another where they are
        more than it may have. Raises TransactionFailed and RecreatedError.
        """
        by_source, next_ = self._share.by_source, self._share.next
        wanted: dict[TopicPartition, list[Any]] = {}
        opened, limit_bytes = self._open, self._open.size.limit_bytes
        for record in records:
            partition = by_source.get((record.topic(), record.partition()))
            if partition is None:
                continue
            offset = record.offset()
            if offset < next_[partition]:
                if self._share.is_past(partition, offset):
                    self._replaced.add(partition)
                continue
            next_[partition] = offset + 1
            wanted.setdefault(partition, []).append(record)
            opened.records += 1
            opened.bytes += len(record) + len(record.key() or b"")
            if opened.bytes >= limit_bytes:
                self._write(wanted)
                self._commit()
                wanted, limit_bytes = {}, opened.size.limit_bytes
        self._write(wanted)
        if records:
            self._producer.serve()

    def _write(self, wanted: dict[TopicPartition, list[Any]]) -> None:
        self._open.fill(wanted.keys(), time.monotonic())
        for partition, some in wanted.items():
            self._share.note_last(partition, some[-1].offset(), some[-1].leader_epoch())
            self._writer.add(partition, some)

    def _take_news(self, news: News) -> None:
        for source, end in news.ends.items():
            partition = self._share.by_source.get(source)
            if partition is not None and end > self._share.next[partition]:
                # Behind the markers of transactions, which are no records.
                self._share.move(partition, end)
        lost = {
            self._share.by_source[each] for each in news.out_of_range & self._share.by_source.keys()
        }
        if lost:
            self._go_on_after_loss(lost)
        cut = {self._share.by_source[each] for each in news.cut & self._share.by_source.keys()}
        cut |= self._replaced & self._share.committed.keys()
        self._replaced.clear()
        if cut:
            self._leave_out_cut(cut)
        gone = {
            each.topic for each in self._share.committed if self._share.sources[each] in news.gone
        }
        if gone:
            check_source(self._source, self._share, gone)

    def _go_on_after_loss(self, lost: set[TopicPartition]) -> None:
        """The source does not have the offset any more. Raises RecreatedError."""
        check_source(self._source, self._share, {each.topic for each in lost})
        sources = {each: self._share.source_of(each) for each in lost}
        with self._source.asked():
            firsts = first_offsets(self._source, sources.values())
            ends = end_offsets(self._source, sources.values())
        if any(self._share.next[each] > ends[source] for each, source in sources.items()):
            # What the open transaction has from there, the source has not any more.
            self._abort()
        for each, source in sources.items():
            at, first, end = self._share.next[each], firsts[source], ends[source]
            if at < first:
                self._tell(events.removed(source, at, first - 1))
                self._share.move(each, first)
                self._share.forget_removed(each, first)
            elif at > end:
                self._tell(events.cut(source, at, end))
                self._put_out(each.topic)
            else:
                # Only markers after the last record are left of what was read.
                self._share.forget_removed(each, first)
        for topic in {each.topic for each in lost} & {name for name, _ in self._out}:
            self._share.drop(topic)
        self._reader.assign(self._share.next_offsets())

    def _leave_out_cut(self, cut: set[TopicPartition]) -> None:
        """The source's logs were cut below what was read of them, and have grown again."""
        self._abort()
        for each in cut:
            self._tell(events.cut(self._share.source_of(each), self._share.next[each]))
            self._put_out(each.topic)
        for topic in {each.topic for each in cut}:
            self._share.drop(topic)
        self._reader.assign(self._share.next_offsets())

    def _leave_out(self, names: Iterable[str]) -> None:
        """These topics were deleted, and perhaps created again: nothing of them is mirrored on."""
        self._abort()
        for name in names:
            source = next(
                self._share.sources[each] for each in self._share.committed if each.topic == name
            )
            self._put_out(name)
            self._share.drop(name)
            self._tell(events.recreated(source))
        self._reader.assign(self._share.next_offsets())

    def _put_out(self, name: str) -> None:
        # The newest plan may not have it any more.
        topic = self._plan.mirrored.get(name)
        self._out.add((name, None if topic is None else topic.id))
        # The other instances are told by the positions.
        self._has_changed = True

    # Transactions

    def _commit(self) -> None:
        positions = self._share.changed()
        if not positions:
            return
        topics = {each.topic for each in positions}

        def check() -> None:
            check_source(self._source, self._share, topics)
            check_target(self._target, self._share, topics)

        self._writer.commit(positions, self._share.names(positions), {}, check)
        self._share.note_committed(positions)
        self.progress.add(self._open.records, self._open.bytes)
        self._open.note_committed(time.monotonic())
        self._failures = 0

    def _finish_transaction(self) -> None:
        """What was read is committed before the end."""
        try:
            self._commit()
        except (TransactionFailed, RetriableError, RecreatedError):
            self._abort()

    def _abort(self) -> None:
        self._writer.abort()
        self._open.clear()
        self._share.rewind()

    def _try_again(self, failed: TransactionFailed) -> None:
        """Reads the records of a failed transaction again. Raises MirrorError."""
        is_smaller = self._open.note_failed(failed)
        self._abort()
        # Over a slow link a smaller one may get through, so this is not one failure more.
        self._failures += not is_smaller
        if failed.is_too_large and self._one_by_one:
            raise MirrorError(
                "a record is larger than the target takes.",
                "Raise the topic's max.message.bytes, or the target's message.max.bytes.",
            )
        if self._failures > MAX_FAILURES:
            raise LibrdkafkaError(f"cannot go on: {failed.reason}")
        if failed.is_too_large:
            # The source's batches were smaller than librdkafka's.
            self._one_by_one = True
            self._producer.renew(one_by_one=True)
            text = "The target refuses a batch for its size; each record gets its own from now on."
        else:
            text = f"A transaction was aborted, and its records are read again: {failed.reason}"
            if is_smaller:
                text += " The next ones are smaller."
            time.sleep(FAILED_PAUSE_S)
        self._tell(Event(events.WAITING, text))
        # Topics of the target may be others than before: all positions are looked at again.
        self._has_changed = True

    # The end

    def _has_reached(self, until: Mapping[TopicPartition, int]) -> bool:
        """Whether every partition is committed up to there, by whichever instance.

        Not before the source has taken each position: of a log that was cut, and that has grown to
        the position again or has an open transaction below it, the end alone says nothing.
        """
        if self._assignment.is_waiting or self._has_changed:
            return False
        if until and not self._has_joined:
            return False
        out = {name for name, _ in self._out}
        held = (each for each in self._share.committed if each.topic not in out)
        if any(self._reader.end_seen(self._share.source_of(each)) is None for each in held):
            return False
        return self._end.is_reached(until, self._share.committed, out, self._plan)

    def settle_groups(self) -> None:
        """Sets the offsets of groups a last time. Raises ClientError and LibrdkafkaError."""
        self.keeper.stop()
        self.keeper.keep_groups_up()

    def switch(
        self, group: str, is_stopped: Callable[[], bool] = lambda: False
    ) -> list[Translated] | None:
        """Moves a group over, after it has mirrored all that the group has read; None if it was
        stopped before. Raises ClientError, LibrdkafkaError and MirrorError.
        """
        for _ in range(MAX_SWITCHES):
            self.keeper.stop()
            found = self.keeper.switch(group, {name for name, _ in self._out})
            if found.moved is not None:
                return found.moved
            self.keeper.start()
            if not self.run(is_stopped, found.behind):
                return None
        raise MirrorError(
            f"group {group!r} reads on at the source.",
            "Stop its consumers first; it is moved at its last committed offsets.",
        )

    def close(self) -> None:
        """Leaves the group, and closes all."""
        self._ending.close()
