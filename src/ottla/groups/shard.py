"""The groups and offsets of one partition of `__consumer_offsets`: classic groups, in `consumer`
those of KIP-848, in `share` share groups, and in `streams` streams groups. A group id is that of
one group, of one type.

Which groups there are, the generation of each in the log, and the offsets change in `apply` only,
which is also how a restarted broker rebuilds them. The rebalances in progress are in memory only
(`classic/group.py`). Every method with a Step decides: one that writes records changes nothing
before they are applied.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

from ottla.groups import classic_members
from ottla.groups.aside import Aside, Copied, is_unchanged
from ottla.groups.classic import departure, describe, rebalance
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.heartbeat import heartbeat
from ottla.groups.classic.join import join, metadata_error, refusal, session_timeout_error
from ottla.groups.classic.noted import note
from ottla.groups.classic.requests import (
    UNKNOWN_MEMBER_ID,
    DescribedGroup,
    HeartbeatRequest,
    JoinRequest,
    JoinResult,
    LeavingMember,
    LeftMember,
    ListedGroup,
    SyncRequest,
    SyncResult,
)
from ottla.groups.classic.state import DEAD, EMPTY, PREPARING_REBALANCE
from ottla.groups.classic.sync import sync
from ottla.groups.classic.timers import await_heartbeat, forget_heartbeat, join_key, sync_key
from ottla.groups.classic_members import Joining
from ottla.groups.consumer import requests as consumer_requests
from ottla.groups.consumer.commit import check_fetch
from ottla.groups.consumer.departure import (
    late,
    leaving,
    leaving_members,
    remove_all,
    why_late,
)
from ottla.groups.consumer.describe import (
    CONSUMER_TYPE,
    DescribedConsumerGroup,
)
from ottla.groups.consumer.describe import describe as describe_consumer
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import heartbeat as consumer_heartbeat
from ottla.groups.consumer.heartbeat import is_epoch_due
from ottla.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH
from ottla.groups.consumer.member import Member as ConsumerMember
from ottla.groups.consumer.noted import note_gone, who_is
from ottla.groups.consumer.requests import HeartbeatRequest as ConsumerHeartbeat
from ottla.groups.consumer.requests import HeartbeatResult as ConsumerHeartbeatResult
from ottla.groups.consumer.settings import ConsumerGroupSettings, default_settings
from ottla.groups.consumer.shard import ConsumerGroupShard
from ottla.groups.consumer.step import ClassicExpired, RebalanceExpired, SessionExpired
from ottla.groups.consumer.step import Step as ConsumerStep
from ottla.groups.consumer.stored import ConsumerRecord
from ottla.groups.consumer.timers import await_heartbeat as await_consumer
from ottla.groups.consumer.timers import expires_again
from ottla.groups.consumer.timers import forget as forget_consumer
from ottla.groups.consumer.topics import NO_TOPICS, Topics
from ottla.groups.conversion import check_upgrade, downgraded, may_downgrade, upgraded
from ottla.groups.history.events import CLASSIC, CONSUMER, Caused, Happened, Loaded, Why
from ottla.groups.history.events import Cause as HistoryCause
from ottla.groups.offsets import removal
from ottla.groups.offsets.commit import Cause, CommitRequest, commit, committed
from ottla.groups.offsets.fetch import FetchedOffset, FetchingMember, fetch, fetch_all
from ottla.groups.offsets.pending import PendingOffsets
from ottla.groups.offsets.store import OffsetStore
from ottla.groups.offsets.transactional_commit import (
    TransactionalCommitRequest,
    commit_in_transaction,
)
from ottla.groups.records import Record, encode
from ottla.groups.share import requests as share_requests
from ottla.groups.share.describe import SHARE_TYPE, DescribedShareGroup
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.large import MAX_AT_ONCE as MAX_SHARES_AT_ONCE
from ottla.groups.share.large import state_weight
from ottla.groups.share.member import JOIN_EPOCH as SHARE_JOIN_EPOCH
from ottla.groups.share.member import Member as ShareMember
from ottla.groups.share.requests import HeartbeatRequest as ShareHeartbeat
from ottla.groups.share.requests import HeartbeatResult as ShareHeartbeatResult
from ottla.groups.share.settings import ShareGroupSettings, default_share_settings
from ottla.groups.share.shard import ShareGroupShard
from ottla.groups.share.step import Step as ShareStep
from ottla.groups.share.stored import ShareRecord
from ottla.groups.share.timers import await_heartbeat as await_share
from ottla.groups.share.timers import expires_again as share_expires_again
from ottla.groups.step import (
    HeartbeatExpired,
    InitialDelayExpired,
    JoinExpired,
    Step,
    SyncExpired,
    TimerEvent,
)
from ottla.groups.stored import (
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.groups.streams import commit as streams_commit
from ottla.groups.streams import requests as streams_requests
from ottla.groups.streams.describe import STREAMS_TYPE, DescribedStreamsGroup
from ottla.groups.streams.describe_topology import DescriptionUpdate
from ottla.groups.streams.group import Soft, StreamsGroup
from ottla.groups.streams.member import JOIN_EPOCH as STREAMS_JOIN_EPOCH
from ottla.groups.streams.member import Member as StreamsMember
from ottla.groups.streams.requests import HeartbeatRequest as StreamsHeartbeat
from ottla.groups.streams.requests import HeartbeatResult as StreamsHeartbeatResult
from ottla.groups.streams.settings import StreamsGroupSettings, default_streams_settings
from ottla.groups.streams.shard import StreamsGroupShard
from ottla.groups.streams.step import FirstAssignmentDue
from ottla.groups.streams.step import Step as StreamsStep
from ottla.groups.streams.stored import StreamsRecord
from ottla.groups.streams.timers import await_heartbeat as await_streams
from ottla.groups.streams.timers import expires_again as streams_expires_again
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.shards.step import ProducerEpoch, TransactionMarker
from ottla.shards.step import Step as ShardStep

T = TypeVar("T")

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


class GroupShard:
    """Which groups there are, and the deciders over them."""

    def __init__(
        self,
        topics: Callable[[], Topics] = lambda: NO_TOPICS,
        consumer_settings: Callable[[str], ConsumerGroupSettings] = default_settings,
        share_settings: Callable[[str], ShareGroupSettings] = default_share_settings,
        streams_settings: Callable[[str], StreamsGroupSettings] = default_streams_settings,
    ) -> None:
        """The topics of the cluster, the settings of a consumer group by its name, and those of
        share groups and of streams groups, now.
        """
        self._topics = topics
        self._consumer_settings = consumer_settings
        self._share_settings = share_settings
        self._streams_settings = streams_settings
        self.groups: dict[str, ClassicGroup] = {}
        self.consumer = ConsumerGroupShard()
        self.share = ShareGroupShard()
        self.streams = StreamsGroupShard()
        self.offsets = OffsetStore()
        self.pending = PendingOffsets()
        """Of transactions that are open."""
        self._loaded = False

    # What the log has.

    def apply(
        self,
        record: Record,
        offset: int,
        timestamp_ms: int,
        producer: ProducerEpoch | None,
    ) -> None:
        """Takes over one record of the log, while loading and ever after."""
        if not isinstance(record, CoordinatorRecord):
            self._apply_to_others(record, timestamp_ms)
            return
        key, value = record
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            if (
                value is not None
                and key.group not in self.groups
                and key.group not in self.consumer.groups
                and key.group not in self.streams.groups
            ):
                # A group that only commits: "simple" in Kafka's words.
                self.groups[key.group] = ClassicGroup(key.group, timestamp_ms)
            if producer is None and not self.pending:
                self.offsets.apply(key, value)
            else:
                self._apply_beside_transactions(key, value, offset, producer)
            return
        assert value is None or isinstance(value, GroupMetadataValue)
        group = self.groups.get(key.group)
        if value is None:
            self.groups.pop(key.group, None)
        elif group is None or not self._loaded:
            self.groups[key.group] = ClassicGroup.from_stored(key.group, value)
        else:
            group.apply(value)

    def _apply_to_others(
        self, record: ConsumerRecord | ShareRecord | StreamsRecord, timestamp_ms: int
    ) -> None:
        if isinstance(record, ShareRecord):
            self.share.apply(record, timestamp_ms)
            return
        if isinstance(record, ConsumerRecord):
            self.consumer.apply(record)
        else:
            self.streams.apply(record)
        if record.key.group in self.consumer.groups or record.key.group in self.streams.groups:
            # What was there is a group that only commits: it has no record of its own.
            self.groups.pop(record.key.group, None)

    def _apply_beside_transactions(
        self,
        key: OffsetCommitKey,
        value: OffsetCommitValue | None,
        offset: int,
        producer: ProducerEpoch | None,
    ) -> None:
        if producer is not None and value is not None:
            self.pending.add(producer.producer_id, key, value, offset)
            return
        self.offsets.apply(key, value)
        if value is None:
            self.pending.remove(key)
        else:
            self.pending.supersede(key, offset)

    def apply_marker(self, marker: TransactionMarker, offset: int) -> None:
        """Commits or drops the pending offsets of the producer; a repeated marker finds none."""
        ended = self.pending.end(marker.producer.producer_id, marker.is_commit)
        for key, value in ended.items():
            self.offsets.apply(key, value)

    def loaded(self, step: Step) -> None:
        """Members have their session timeout to send a heartbeat."""
        self._loaded = True
        names = [*self.group_ids(), *self.share.groups]
        if names:
            step.committed.append(Loaded(names, step.now_ms))
        for group_id in self.consumer.groups:
            inner = self.consumer_step(step, group_id)
            self.consumer.loaded(group_id, inner)
            _add(inner, step)
        for group_id in self.share.groups:
            shares = ShareStep(step.now_ms, self._share_settings(group_id))
            self.share.loaded(group_id, shares)
            _add(shares, step)
        for group_id in self.streams.groups:
            streams = StreamsStep(step.now_ms, self._streams_settings(group_id))
            self.streams.loaded(group_id, streams)
            _add(streams, step)
        for group in self.groups.values():
            for member in group.members.values():
                await_heartbeat(group, member, step)
            if len(group.members) > step.settings.max_size:
                # The limit is smaller than before; a rebalance lets consumers commit first.
                note(group, step, Why.TOO_LARGE)
                rebalance.prepare_rebalance(group, step)

    def unloaded(self, step: Step) -> None:
        """Another broker leads the partition: requests that wait have to go there."""
        error = ErrorCode.not_coordinator
        for group in self.groups.values():
            group.move_to(DEAD, step.now_ms)
            for member in group.members.values():
                group.answer_join(member, JoinResult(error, member.member_id), step)
                group.answer_sync(member, SyncResult(error), step)

    # Groups of any type.

    def _group(self, group_id: str) -> ClassicGroup | ConsumerGroup | StreamsGroup | None:
        """One that has offsets: share groups have none."""
        return (
            self.groups.get(group_id)
            or self.consumer.groups.get(group_id)
            or self.streams.groups.get(group_id)
        )

    def _exists(self, group_id: str) -> bool:
        """Whether the id is that of a group, of any type."""
        return self._group(group_id) is not None or group_id in self.share.groups

    def _is_of_others(self, group_id: str, groups: Container[str]) -> bool:
        """Whether the id is that of a group that is not among these."""
        return group_id not in groups and self._exists(group_id)

    def _refuse_share_group(self, group_id: str) -> None:
        """Raises ApiError (GROUP_ID_NOT_FOUND) where the id is that of a share group."""
        if group_id in self.share.groups:
            raise _is_no(group_id, "consumer")

    def group_ids(self) -> list[str]:
        """Of groups that have offsets, which expire."""
        return [*self.groups, *self.consumer.groups, *self.streams.groups]

    def _is_full(self, step: Step) -> bool:
        count = len(self.groups) + len(self.consumer.groups)
        count += len(self.share.groups) + len(self.streams.groups)
        return count >= step.settings.max_groups

    # Members.

    def join(self, request: JoinRequest, step: Step) -> None:
        """JoinGroup; answered through the request's token."""
        error = session_timeout_error(request, step.settings)
        group = self.groups.get(request.group)
        if error is ErrorCode.none and group is None:
            consumers = self.consumer.groups.get(request.group)
            streams = self.streams.groups.get(request.group)
            if request.group in self.share.groups or (streams is not None and streams.members):
                error = ErrorCode.inconsistent_group_protocol
            elif consumers is not None and consumers.members:
                self._join_consumers(consumers, request, step)
                return
            elif request.member_id != UNKNOWN_MEMBER_ID:
                error = ErrorCode.unknown_member_id
            elif self._is_full(step) and consumers is None and streams is None:
                error = ErrorCode.group_max_size_reached
        if error is not ErrorCode.none:
            step.reply(request.token, JoinResult(error, request.member_id))
        elif group is None:
            self._join_new_group(request, step)
        else:
            join(group, request, step)

    def _join_new_group(self, request: JoinRequest, step: Step) -> None:
        error = refusal(ClassicGroup(request.group, step.now_ms), request, step.settings)
        if error is not ErrorCode.none:
            step.reply(request.token, JoinResult(error, request.member_id))
            return
        if request.group in self.consumer.groups:
            inner = self.consumer_step(step, request.group)
            self.consumer.remove(request.group, inner)
            _add(inner, step)
        if request.group in self.streams.groups:
            self._remove_group(self.streams.groups[request.group], step)
        value = GroupMetadataValue("", 0, None, None, step.now_ms, ())
        step.records.append(CoordinatorRecord(GroupMetadataKey(request.group), value))
        step.when_appended = lambda later: join(self.groups[request.group], request, later)

    def join_aside(
        self, request: JoinRequest, step: Step
    ) -> Aside[ConsumerGroup, ConsumerStep] | None:
        """The consumer group that decides this JoinGroup elsewhere (`join_copied`); None: `join`
        does it.
        """
        group = self.consumer.groups.get(request.group)
        if group is None or not group.members:
            return None
        for error in (
            session_timeout_error(request, step.settings),
            metadata_error(request, step.settings),
        ):
            if error is not ErrorCode.none:
                return None
        topics = self._topics()
        if not classic_members.is_large_join(group, request, topics):
            return None
        return Aside(group, topics, self.consumer_step(step, request.group))

    def has_joined(self, group_id: str, member_id: str, step: Step) -> None:
        """A JoinGroup that was decided elsewhere was taken over."""
        group = self.consumer.groups.get(group_id)
        if group is not None:
            group.awaited_joins.pop(member_id, None)

    def _join_consumers(self, group: ConsumerGroup, request: JoinRequest, step: Step) -> None:
        """A member of the classic protocol in a consumer group, or instead of its last member of
        the other protocol.
        """
        inner = self.consumer_step(step, group.group_id)
        try:
            error = metadata_error(request, step.settings)
            if error is not ErrorCode.none:
                raise ApiError(error)
            joins = classic_members.joining(group, request, inner)
            if isinstance(joins, JoinResult):
                step.reply(request.token, joins)
                return
            instance_id = request.group_instance_id
            previous = None if instance_id is None else group.static_member(instance_id)
            if previous is not None:
                gone = {previous.member_id: previous}
                if may_downgrade(group, gone, inner.settings, joins.after):
                    self._downgrade(group, gone, step, joins, request.token)
                    return
            result = classic_members.join(group, joins, self._topics(), inner)
        except ApiError as refused:
            step.reply(request.token, JoinResult(refused.code, request.member_id))
            return
        _add(inner, step)
        step.reply(request.token, result)

        def appended(later: Step) -> None:
            group.awaited_joins.pop(result.member_id, None)

        step.when_appended = appended

    def sync(self, request: SyncRequest, step: Step) -> None:
        """SyncGroup; answered through the request's token."""
        group = self.groups.get(request.group)
        consumers = self.consumer.groups.get(request.group)
        if group is None and consumers is not None and consumers.members:
            inner = self.consumer_step(step, request.group)
            try:
                result = classic_members.sync(consumers, request, self._topics(), inner)
            except ApiError as error:
                result = SyncResult(error.code)
            _add(inner, step)
            step.reply(request.token, result)
        elif group is None or group.state is EMPTY:
            step.reply(request.token, SyncResult(ErrorCode.unknown_member_id))
        else:
            sync(group, request, step)

    def heartbeat(self, request: HeartbeatRequest, step: Step) -> ErrorCode:
        group = self.groups.get(request.group)
        if group is not None:
            return heartbeat(group, request, step)
        consumers = self.consumer.groups.get(request.group)
        if consumers is None:
            return ErrorCode.unknown_member_id
        inner = self.consumer_step(step, request.group)
        try:
            return classic_members.heartbeat(consumers, request, inner)
        except ApiError as error:
            return error.code
        finally:
            _add(inner, step)

    def leave(
        self, group_id: str, leaving: Sequence[LeavingMember], step: Step
    ) -> tuple[LeftMember, ...]:
        """LeaveGroup; raises ApiError where the group moves."""
        group = self.groups.get(group_id)
        consumers = self.consumer.groups.get(group_id)
        if consumers is not None:
            return self._leave_consumers(consumers, leaving, step)
        if group is None:
            error = ErrorCode.unknown_member_id
            return tuple(
                LeftMember(member.member_id, member.group_instance_id, error) for member in leaving
            )
        if group.state is DEAD:
            raise ApiError(ErrorCode.coordinator_not_available)
        return departure.leave(group, leaving, step)

    def expired(self, event: TimerEvent, step: Step) -> None:
        """A timer has expired; the group may be gone by now."""
        if isinstance(event, FirstAssignmentDue):
            self._streams_expired(event, step)
            return
        if isinstance(event, SessionExpired | RebalanceExpired | ClassicExpired):
            if event.group in self.streams.groups:
                self._streams_expired(event, step)
            elif isinstance(event, SessionExpired) and event.group in self.share.groups:
                self._share_expired(event, step)
            else:
                self._consumer_expired(event, step)
            return
        group = self.groups.get(event.group)
        if group is None or group.state is DEAD:
            return
        match event:
            case HeartbeatExpired():
                departure.heartbeat_expired(group, event.member, step)
            case InitialDelayExpired():
                rebalance.initial_delay_over(group, event, step)
            case JoinExpired():
                if group.state is PREPARING_REBALANCE:
                    rebalance.complete_join(group, step)
            case SyncExpired():
                departure.sync_expired(group, event, step)

    # Consumer groups.

    def consumer_step(self, step: Step, group_id: str) -> ConsumerStep:
        """A step of the same moment, with the settings of that consumer group."""
        # By its class: to call an alias with parameters costs 3 µs, 4 % of a heartbeat.
        return ShardStep(step.now_ms, self._consumer_settings(group_id))

    def consumer_heartbeat(
        self, request: ConsumerHeartbeat, version: int, step: Step
    ) -> ConsumerHeartbeatResult | Aside[ConsumerGroup, ConsumerStep]:
        """ConsumerGroupHeartbeat; raises ApiError where it is refused.

        An Aside decides elsewhere, and `take_over` then does what it decided.
        """
        consumer_requests.check(request, version)
        self._refuse_share_group(request.group)
        if request.group in self.streams.groups:
            raise _is_no(request.group, "consumer")
        classic = self.groups.get(request.group)
        if classic is not None:
            if classic.state is not EMPTY and request.epoch == JOIN_EPOCH:
                return self._upgrade(classic, request, step)
            _check_replaced(classic, request)
        elif request.group not in self.consumer.groups and self._is_full(step):
            raise ApiError(ErrorCode.group_max_size_reached)
        if request.epoch == LEAVE_EPOCH and request.group in self.consumer.groups:
            group = self.consumer.groups[request.group]
            member = leaving(group, request)
            left = {member.member_id: HistoryCause(Why.LEFT, who_is(member))}
            if self._is_downgraded_without(group, {member.member_id: member}, step, left):
                return ConsumerHeartbeatResult(request.member_id, request.epoch)
        topics = self._topics()
        inner = self.consumer_step(step, request.group)
        large = self.consumer.large_group(request, topics)
        if large is not None:
            if _has_arrived(large.members.get(request.member_id), request.epoch):
                arrived = self.consumer_step(step, request.group)
                await_consumer(request.group, request.member_id, arrived)
                _add(arrived, step)
            return Aside(large, topics, inner)
        if classic is not None:
            self._remove_group(classic, step)
        result = self.consumer.heartbeat(request, topics, inner, version)
        _add(inner, step)
        return result

    def take_over(
        self,
        copied: Copied[ConsumerGroup, ConsumerStep],
        encoded: list[tuple[bytes, bytes | None]],
        step: Step,
    ) -> bool:
        """What was decided elsewhere is done; False where the group has changed meanwhile."""
        group = copied.original
        if not self._may_take_over(copied, self.consumer.groups):
            return False

        def appended(later: Step) -> None:
            group.checked_version = copied.group.checked_version
            group.regex_version = copied.group.regex_version

        step.when_appended = appended
        self._take_over(copied, encoded, step)
        return True

    def _may_take_over(
        self, copied: Copied[Any, Any], groups: Mapping[str, ConsumerGroup | StreamsGroup]
    ) -> bool:
        """Whether the group, one of these, is as it was copied. A new one may replace an empty
        classic group.
        """
        group_id = copied.original.group_id
        classic = self.groups.get(group_id)
        is_replaced = classic is not None and classic.state is EMPTY
        is_refused = self._is_of_others(group_id, groups) and not is_replaced
        return not is_refused and is_unchanged(copied, groups)

    def _take_over(
        self, copied: Copied[Any, Any], encoded: list[tuple[bytes, bytes | None]], step: Step
    ) -> None:
        classic = self.groups.get(copied.original.group_id)
        if classic is not None:
            self._remove_group(classic, step)
        step.encoded = [*map(encode, step.records), *encoded]
        _add(copied.step, step)

    def aside_of(self, group_id: str, step: Step) -> Aside[ConsumerGroup, ConsumerStep] | None:
        """A consumer group that decides elsewhere; None if there is none."""
        group = self.consumer.groups.get(group_id)
        if group is None:
            return None
        return Aside(group, self._topics(), self.consumer_step(step, group_id))

    def _upgrade(
        self, group: ClassicGroup, request: ConsumerHeartbeat, step: Step
    ) -> ConsumerHeartbeatResult:
        """A member of the consumer protocol joins a classic group, which becomes a consumer group.

        Raises ApiError (GROUP_ID_NOT_FOUND) where it may not.
        """
        if group.state is DEAD:
            raise ApiError(ErrorCode.coordinator_not_available)
        inner = self.consumer_step(step, group.group_id)
        check_upgrade(group, inner.settings)
        topics = self._topics()
        consumers, records = upgraded(group, topics)
        inner.records += records
        for member in group.members.values():
            await_consumer(group.group_id, member.member_id, inner, member.session_timeout_ms)
        result = consumer_heartbeat(consumers, request, topics, inner)
        step.records.append(CoordinatorRecord(GroupMetadataKey(group.group_id), None))
        cause = HistoryCause(Why.UPGRADED)
        step.committed.append(
            Caused(group.group_id, CONSUMER, consumers.epoch + 1, step.now_ms, cause)
        )
        _add(inner, step)
        for member_id in (*group.members, *group.pending_members):
            forget_heartbeat(group, member_id, step)
        step.cancel_timer(join_key(group))
        step.cancel_timer(sync_key(group))

        def appended(later: Step) -> None:
            error = ErrorCode.rebalance_in_progress
            for member in group.members.values():
                group.answer_join(member, JoinResult(error, member.member_id), later)
                group.answer_sync(member, SyncResult(error), later)

        step.when_appended = appended
        return result

    def _is_downgraded_without(
        self,
        group: ConsumerGroup,
        gone: Mapping[str, ConsumerMember],
        step: Step,
        causes: Mapping[str, HistoryCause],
    ) -> bool:
        """Makes it a classic group if only classic members are left without these."""
        settings = self._consumer_settings(group.group_id)
        if not may_downgrade(group, gone, settings):
            return False
        inner = self.consumer_step(step, group.group_id)
        note_gone(group, gone, causes, inner)
        _add(inner, step)
        self._downgrade(group, gone, step)
        return True

    def _downgrade(
        self,
        group: ConsumerGroup,
        gone: Mapping[str, ConsumerMember],
        step: Step,
        joins: Joining | None = None,
        token: Any = None,
    ) -> None:
        """Without members that are gone, and with one that `joins` in place of one of them."""
        topics, group_id = self._topics(), group.group_id
        joining = None if joins is None else joins.after
        made = downgraded(group, gone, topics, step.now_ms, joining)
        must_rebalance = made.must_rebalance
        if joins is not None:
            must_rebalance |= is_epoch_due(group, joins.before, joins.after, topics)
        step.records += made.records
        kind = Caused if must_rebalance else Happened
        cause = HistoryCause(Why.DOWNGRADED, None if joining is None else who_is(joining))
        step.committed.append(kind(group_id, CLASSIC, group.epoch + 1, step.now_ms, cause))
        inner = self.consumer_step(step, group_id)
        for member_id in group.members:
            forget_consumer(group_id, member_id, inner)
        _add(inner, step)

        def appended(later: Step) -> None:
            classic = self.groups[group_id]
            for member in classic.members.values():
                classic.restore(
                    member,
                    made.protocols[member.member_id],
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                )
                await_heartbeat(classic, member, later)
            if joining is not None:
                result = classic_members.joined(joining._replace(epoch=classic.generation))
                later.reply(token, result._replace(protocol_name=classic.protocol_name))
            if must_rebalance:
                rebalance.prepare_rebalance(classic, later)

        step.when_appended = appended

    def _leave_consumers(
        self, group: ConsumerGroup, leaving: Sequence[LeavingMember], step: Step
    ) -> tuple[LeftMember, ...]:
        named = [(each.member_id, each.group_instance_id) for each in leaving]
        gone, errors = leaving_members(group, named)
        removed = {
            each.group_instance_id for each in leaving if each.member_id == UNKNOWN_MEMBER_ID
        } - {None}
        causes = {
            member_id: HistoryCause(
                Why.REMOVED if member.instance_id in removed else Why.LEFT, who_is(member)
            )
            for member_id, member in gone.items()
        }
        if gone and not self._is_downgraded_without(group, gone, step, causes):
            inner = self.consumer_step(step, group.group_id)
            remove_all(group, gone, self._topics(), inner, causes)
            _add(inner, step)
        return tuple(LeftMember(*each, error) for each, error in zip(named, errors, strict=True))

    def _consumer_expired(
        self, event: SessionExpired | RebalanceExpired | ClassicExpired, step: Step
    ) -> None:
        group = self.consumer.groups.get(event.group)
        member = None if group is None else late(group, event)
        if group is None or member is None:
            return
        inner = self.consumer_step(step, event.group)
        late_for = {member.member_id: why_late(member, event, inner.settings)}
        if not self._is_downgraded_without(group, {member.member_id: member}, step, late_for):
            self.consumer.expired(event, self._topics(), inner)
            _add(inner, step)

        def refused(later: Step, error: ErrorCode) -> None:
            again = self.consumer_step(later, event.group)
            expires_again(event, again)
            _add(again, later)

        step.when_refused = refused

    def describe_consumer_group(self, group_id: str) -> DescribedConsumerGroup:
        """ConsumerGroupDescribe; raises ApiError (GROUP_ID_NOT_FOUND)."""
        group = self.consumer.groups.get(group_id)
        if group is None:
            if self._exists(group_id):
                raise _is_no(group_id, "consumer")
            raise ApiError(ErrorCode.group_id_not_found, f"Group {group_id} not found.")
        return describe_consumer(group)

    # Share groups.

    def share_decision(
        self,
        group_id: str,
        step: Step,
        decide: Callable[[ShareGroupShard, Topics, ShareStep], T],
    ) -> T:
        """A decision about a share group as a part of this step."""
        inner = ShareStep(step.now_ms, self._share_settings(group_id))
        result = decide(self.share, self._topics(), inner)
        _add(inner, step)
        return result

    def check_is_share_group(self, group_id: str) -> None:
        """Raises ApiError (GROUP_ID_NOT_FOUND) where the id is that of another group."""
        if self._is_of_others(group_id, self.share.groups):
            raise _is_no(group_id, "share")

    def share_heartbeat(
        self, request: ShareHeartbeat, step: Step
    ) -> ShareHeartbeatResult | Aside[ShareGroup, ShareStep]:
        """ShareGroupHeartbeat; raises ApiError where it is refused.

        An Aside decides elsewhere, and `take_over_share` then does what it decided.
        """
        share_requests.check(request)
        self.check_is_share_group(request.group)
        is_new = request.epoch == SHARE_JOIN_EPOCH and request.group not in self.share.groups
        if is_new and self._is_full(step):
            raise ApiError(ErrorCode.group_max_size_reached)
        topics = self._topics()
        inner: ShareStep = ShardStep(step.now_ms, self._share_settings(request.group))
        large = self.share.large_group(request, topics)
        if large is not None:
            if _has_arrived(large.members.get(request.member_id), request.epoch):
                arrived: ShareStep = ShardStep(step.now_ms, inner.settings)
                await_share(request.group, request.member_id, arrived)
                _add(arrived, step)
            return Aside(large, topics, inner)
        result = self.share.heartbeat(request, topics, inner)
        _add(inner, step)
        return result

    def share_change(
        self,
        group_id: str,
        work: Callable[[ShareGroup, Topics, ShareStep], T],
        step: Step,
        *,
        more: int = 0,
        may_be_new: bool = False,
    ) -> T | Aside[ShareGroup, ShareStep]:
        """What administrators and share coordinators change (`ottla.groups.share.administration`);
        raises ApiError (GROUP_ID_NOT_FOUND, and what `work` raises).

        `more` partitions are named; an Aside decides elsewhere.
        """
        self.check_is_share_group(group_id)
        if may_be_new and group_id not in self.share.groups:
            if self._is_full(step):
                raise ApiError(ErrorCode.group_max_size_reached)
            group = ShareGroup(group_id)
        else:
            group = self.share.known(group_id)
        topics = self._topics()
        inner = ShareStep(step.now_ms, self._share_settings(group_id))
        if state_weight(group, topics) + more > MAX_SHARES_AT_ONCE:
            return Aside(group, topics, inner)
        result = work(group, topics, inner)
        _add(inner, step)
        return result

    def take_over_share(
        self,
        copied: Copied[ShareGroup, ShareStep],
        encoded: list[tuple[bytes, bytes | None]],
        step: Step,
    ) -> bool:
        """What was decided elsewhere is done; False where the group has changed meanwhile."""
        group = copied.original
        groups = self.share.groups
        if self._is_of_others(group.group_id, groups) or not is_unchanged(copied, groups):
            return False

        def appended(later: Step) -> None:
            group.checked_version = copied.group.checked_version
            if not copied.step.records:
                group.initialized_version = copied.group.initialized_version

        step.when_appended = appended
        _add(copied.step, step)
        step.encoded = encoded
        return True

    def _share_expired(self, event: SessionExpired, step: Step) -> None:
        self.share_decision(
            event.group, step, lambda share, topics, inner: share.expired(event, topics, inner)
        )

        def refused(later: Step, error: ErrorCode) -> None:
            self.share_decision(
                event.group, later, lambda share, topics, inner: share_expires_again(event, inner)
            )

        step.when_refused = refused

    def describe_share_group(self, group_id: str) -> DescribedShareGroup:
        """ShareGroupDescribe; raises ApiError (GROUP_ID_NOT_FOUND)."""
        self.check_is_share_group(group_id)
        return self.share.describe(group_id)

    # Streams groups.

    def streams_heartbeat(
        self, request: StreamsHeartbeat, step: Step
    ) -> StreamsHeartbeatResult | Aside[StreamsGroup, StreamsStep]:
        """StreamsGroupHeartbeat; raises ApiError where it is refused.

        An Aside decides elsewhere, and `take_over_streams` then does what it decided.
        """
        streams_requests.check(request)
        classic = self._replaced_by(request, step)
        topics = self._topics()
        inner = StreamsStep(step.now_ms, self._streams_settings(request.group))
        large = self.streams.large_group(request, topics)
        if large is not None:
            if _has_arrived(large.members.get(request.member_id), request.epoch):
                arrived = StreamsStep(step.now_ms, inner.settings)
                await_streams(request.group, request.member_id, arrived)
                _add(arrived, step)
            return Aside(large, topics, inner)
        if classic is not None:
            self._remove_group(classic, step)
        decided = self.streams.heartbeat(request, topics, inner)
        self._keep(request.group, decided.soft, step)
        _add(inner, step)
        return decided.result

    def describe_streams_topology(self, update: DescriptionUpdate, step: Step) -> str | None:
        """StreamsGroupTopologyDescriptionUpdate; raises ApiError."""
        if self._is_of_others(update.group, self.streams.groups):
            raise _is_no(update.group, "streams")
        inner = StreamsStep(step.now_ms, self._streams_settings(update.group))
        why_not, soft = self.streams.describe_topology(update, inner)
        self._keep(update.group, soft, step)
        _add(inner, step)
        return why_not

    def _replaced_by(self, request: StreamsHeartbeat, step: Step) -> ClassicGroup | None:
        """The empty classic group that makes room for a new group; raises ApiError
        (GROUP_ID_NOT_FOUND) for other groups.
        """
        group_id = request.group
        if group_id in self.streams.groups:
            return None
        classic = self.groups.get(group_id)
        is_joining = request.epoch == STREAMS_JOIN_EPOCH
        if classic is not None and classic.state is EMPTY and is_joining:
            return classic
        if self._exists(group_id):
            raise _is_no(group_id, "streams")
        if is_joining and self._is_full(step):
            raise ApiError(ErrorCode.group_max_size_reached)
        return None

    def _keep(self, group_id: str, soft: Soft, step: Step) -> None:
        def appended(later: Step) -> None:
            self.streams.keep(group_id, soft)

        step.when_appended = appended

    def take_over_streams(
        self,
        copied: Copied[StreamsGroup, StreamsStep],
        encoded: list[tuple[bytes, bytes | None]],
        step: Step,
    ) -> bool:
        """What was decided elsewhere is done; False where the group has changed meanwhile."""
        if not self._may_take_over(copied, self.streams.groups):
            return False
        decided = copied.group.decided
        assert decided is not None
        soft = decided.merged(copied.group.soft, copied.original.soft)
        self._keep(copied.original.group_id, soft, step)
        self._take_over(copied, encoded, step)
        return True

    def _streams_expired(
        self,
        event: SessionExpired | RebalanceExpired | ClassicExpired | FirstAssignmentDue,
        step: Step,
    ) -> None:
        assert not isinstance(event, ClassicExpired), "streams groups have no classic members"
        inner = StreamsStep(step.now_ms, self._streams_settings(event.group))
        self.streams.expired(event, inner)
        _add(inner, step)
        if isinstance(event, FirstAssignmentDue):
            return  # the next heartbeat assigns

        def refused(later: Step, error: ErrorCode) -> None:
            again = StreamsStep(later.now_ms, self._streams_settings(event.group))
            streams_expires_again(event, again)
            _add(again, later)

        step.when_refused = refused

    def describe_streams_group(self, group_id: str) -> DescribedStreamsGroup:
        """StreamsGroupDescribe; raises ApiError (GROUP_ID_NOT_FOUND)."""
        if self._is_of_others(group_id, self.streams.groups):
            raise _is_no(group_id, "streams")
        return self.streams.describe(group_id)

    # Offsets.

    def check_fetch(self, group_id: str, member: FetchingMember) -> None:
        """OffsetFetch of a member; raises ApiError (UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH)."""
        group = self.consumer.groups.get(group_id)
        if group is not None:
            check_fetch(group, member.member_id, member.epoch)
        streams = self.streams.groups.get(group_id)
        if streams is not None:
            streams_commit.check_fetch(streams, member.member_id, member.epoch)

    def commit(self, request: CommitRequest, step: Step) -> list[ErrorCode]:
        """OffsetCommit: the error of each offset; raises ApiError for all of them."""
        # A classic group, most often: without a call.
        group = self.groups.get(request.group) or self._group(request.group)
        if group is None:
            self._check_new(request.group, step)
        return commit(group, request, self.offsets, self.pending, step)

    def _check_new(self, group_id: str, step: Step) -> None:
        """Whether there may be such a group that only commits; raises ApiError."""
        self._refuse_share_group(group_id)
        if self._is_full(step):
            raise ApiError(ErrorCode.invalid_commit_offset_size)

    def commit_in_transaction(
        self, request: TransactionalCommitRequest, step: Step
    ) -> list[ErrorCode]:
        """TxnOffsetCommit: the error of each offset; raises ApiError for all of them."""
        group = self._group(request.group)
        if group is None:
            self._check_new(request.group, step)
        return commit_in_transaction(group, request, self.offsets, self.pending, step)

    def end_transaction(self, marker: TransactionMarker, step: Step) -> None:
        """WriteTxnMarkers: appends the marker that ends a producer's transaction here."""
        step.marker = marker
        pending = self.pending.of_producer(marker.producer.producer_id)
        if marker.is_commit and pending:
            records = [CoordinatorRecord(key, value) for key, value in pending.items()]
            step.committed += committed(records, step.now_ms, self.offsets, Cause.MEMBER)

    def fetch(
        self,
        group_id: str,
        topic: str,
        topic_id: UUID | None,
        partitions: tuple[int, ...],
        *,
        require_stable: bool = False,
    ) -> tuple[FetchedOffset, ...]:
        unstable = self.pending if require_stable else None
        return fetch(self.offsets, unstable, group_id, topic, topic_id, partitions)

    def fetch_all(
        self, group_id: str, *, require_stable: bool = False
    ) -> dict[str, tuple[FetchedOffset, ...]]:
        return fetch_all(self.offsets, self.pending if require_stable else None, group_id)

    def delete_offsets(
        self, group_id: str, topics: tuple[tuple[str, tuple[int, ...]], ...], step: Step
    ) -> list[list[ErrorCode]]:
        """OffsetDelete: the error of each partition; raises ApiError for all of them."""
        self._refuse_share_group(group_id)
        errors = removal.delete_offsets(
            self._group(group_id), topics, self.offsets, self.pending, step
        )
        self._removed(Cause.OFFSET_DELETE, step)
        return errors

    def _removed(self, cause: Cause, step: Step) -> None:
        """The step's records remove offsets."""
        step.committed += committed(step.records, step.now_ms, self.offsets, cause)

    def topic_deleted(self, topic: str, topic_id: UUID | None, step: Step) -> bool:
        """Removes every group's offsets in a deleted topic. False: ask again, more are left."""
        are_states_gone = True
        if topic_id is not None and self.share.groups:
            records, are_states_gone = self.share.topic_deleted(topic_id)
            step.records += records
        are_offsets_gone = removal.topic_deleted(topic, topic_id, self.offsets, self.pending, step)
        return are_states_gone and are_offsets_gone

    # Groups.

    def delete_group(self, group_id: str, step: Step) -> ErrorCode | None:
        """DeleteGroups: a group without members, with its offsets. None: ask again, it has so many
        that not all are deleted yet.

        Before that the share coordinator has forgotten the states of a share group.
        """
        if group_id in self.share.groups:
            return self._delete_share_group(group_id, step)
        group = self._group(group_id)
        if group is None or group.state is DEAD:
            return ErrorCode.group_id_not_found
        if not _is_empty(group):
            return ErrorCode.non_empty_group
        all_gone = removal.delete_all_offsets(group_id, self.offsets, self.pending, step)
        self._removed(Cause.DELETE_GROUPS, step)
        if not all_gone:
            return None
        self._remove_group(group, step)
        return ErrorCode.none

    def _delete_share_group(self, group_id: str, step: Step) -> ErrorCode:
        try:
            self.share_decision(
                group_id, step, lambda share, topics, inner: share.remove(group_id, inner)
            )
        except ApiError as error:
            return error.code
        return ErrorCode.none

    def remove_expired(self, step: Step, group_ids: Iterable[str] | None = None) -> bool:
        """Removes expired offsets, and groups without members that are left without offsets; of all
        groups or of these. False: ask again, more may be left.
        """
        for group_id in self.group_ids() if group_ids is None else group_ids:
            if removal.is_full(step):
                break
            group = self._group(group_id)
            if group is None:
                continue
            no_offsets = removal.expire_offsets(group, self.offsets, self.pending, step)
            if no_offsets and _is_empty(group):
                self._remove_group(group, step)
        self._removed(Cause.EXPIRED, step)
        return not removal.is_full(step)

    def _remove_group(self, group: ClassicGroup | ConsumerGroup | StreamsGroup, step: Step) -> None:
        if isinstance(group, StreamsGroup):
            streams = StreamsStep(step.now_ms, self._streams_settings(group.group_id))
            self.streams.remove(group.group_id, streams)
            _add(streams, step)
            return
        if isinstance(group, ConsumerGroup):
            inner = self.consumer_step(step, group.group_id)
            self.consumer.remove(group.group_id, inner)
            _add(inner, step)
            return
        for member_id in group.pending_members:
            forget_heartbeat(group, member_id, step)
        step.records.append(CoordinatorRecord(GroupMetadataKey(group.group_id), None))

    def list_groups(self, states: frozenset[str], types: frozenset[str]) -> list[ListedGroup]:
        """Those in one of these states and of one of these types (lower case); empty: any."""
        found = [describe.listed(group) for group in self.groups.values()]
        found += [
            ListedGroup(group_id, CONSUMER_PROTOCOL_TYPE, group.state.value, CONSUMER_TYPE)
            for group_id, group in self.consumer.groups.items()
        ]
        found += [
            ListedGroup(group_id, SHARE_TYPE, shares.state.value, SHARE_TYPE)
            for group_id, shares in self.share.groups.items()
        ]
        found += [
            ListedGroup(group_id, STREAMS_TYPE, streams.state.value, STREAMS_TYPE)
            for group_id, streams in self.streams.groups.items()
        ]
        return [
            group
            for group in found
            if (not states or not states.isdisjoint(_filters(group.state)))
            and (not types or group.type in types)
        ]

    def describe_group(self, group_id: str) -> DescribedGroup:
        """DescribeGroups, which is about classic groups only."""
        group = self.groups.get(group_id)
        if group is None:
            what = "is not a classic group" if self._exists(group_id) else "not found"
            return DescribedGroup(group_id, DEAD.value, reason=f"Group {group_id} {what}.")
        return describe.describe(group)


def _is_no(group_id: str, kind: str) -> ApiError:
    """The id is that of a group of another type."""
    return ApiError(ErrorCode.group_id_not_found, f"Group {group_id} is not a {kind} group.")


def _filters(state: str) -> tuple[str, ...]:
    """Which filters of ListGroups the state passes. Kafka compares "NotReady" as "not_ready" only,
    which is not how its tools write it in lower case.
    """
    return ("not_ready", "notready") if state == "NotReady" else (state.lower(),)


def _is_empty(group: ClassicGroup | ConsumerGroup | StreamsGroup) -> bool:
    if isinstance(group, ClassicGroup):
        return group.state is EMPTY
    return not group.members


def _check_replaced(group: ClassicGroup, request: ConsumerHeartbeat) -> None:
    """An empty classic group makes room for a consumer group; raises ApiError (GROUP_ID_NOT_FOUND)
    for a member that does not join.
    """
    if group.state is DEAD:
        raise ApiError(ErrorCode.coordinator_not_available)
    if request.epoch != JOIN_EPOCH:
        raise _is_no(group.group_id, "consumer")


def _has_arrived(member: ConsumerMember | ShareMember | StreamsMember | None, epoch: int) -> bool:
    """Whether a heartbeat of this epoch keeps its member alive while it waits for its turn in a
    thread: it came in time. Kafka has no such wait.
    """
    return member is not None and epoch > 0 and epoch in (member.epoch, member.previous_epoch)


def _add(inner: ConsumerStep | ShareStep | StreamsStep, step: Step) -> None:
    """What the inner step asks for is a part of the other."""
    step.records += inner.records
    step.timers += inner.timers
    step.committed += inner.committed
