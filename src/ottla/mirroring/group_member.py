"""The membership in the mirror's group at the target: which partitions this instance mirrors, and
their positions in the source, which are the group's offsets.

Nothing is read as a member: the group only shares the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as PartitionAt

from ottla.client.errors import Needs, RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.messaging.librdkafka import failure, quiet, rejected
from ottla.mirroring.clusters import Side, at_side
from ottla.mirroring.names import group_of, map_topic_of, transactional_id_of
from ottla.mirroring.position import Position, metadata_of, read_position
from ottla.mirroring.spec import MirrorSpec
from ottla.mirroring.transaction_age import TAKEN_OVER
from ottla.protocol.errors import ErrorCode

SESSION_TIMEOUT_MS: Final = 10_000
LEAVE_WITHIN_S: Final = 5.0
LEAVE_POLL_S: Final = 0.2
UNSTABLE: Final = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._WAIT_COORD,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
"""The positions cannot be read now: a transaction is open, or the group's coordinator has gone."""
NEEDED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""A permission is missing."""


def refused(spec: MirrorSpec, side: Side, reason: Any, topic: str | None) -> RefusedError:
    """For lack of a permission, one of NEEDED. `topic`: the one that lacks it, which is not always
    known.
    """
    needs = {
        KafkaError.TOPIC_AUTHORIZATION_FAILED: Needs("Write", topic),
        KafkaError.GROUP_AUTHORIZATION_FAILED: Needs("Read", group_of(spec.name)),
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Needs(
            "Write", transactional_id_of(spec.name, spec.instance)
        ),
    }[reason.code()]
    return at_side(side, RefusedError("write", ErrorCode(reason.code()), None, needs))


class GroupMember:
    """For one thread. `on_change` is called within `poll` when partitions come or go."""

    def __init__(self, spec: MirrorSpec, side: Side, on_change: Callable[[], None]) -> None:
        """Raises RejectedSettingsError."""
        self._spec = spec
        self._side = side
        self._on_change = on_change
        self._map_topic = map_topic_of(spec.name)
        self._held: frozenset[TopicPartition] = frozenset()
        """The partitions that the group has given to this instance."""
        self.fatal: Any = None
        """Why it is no member any more: librdkafka's error."""
        try:
            self._consumer = Consumer(self._settings())
        except KafkaException as error:
            raise rejected(error, "write to the target") from error

    def _settings(self) -> dict[str, Any]:
        refresh_ms = int(self._spec.refresh_every_s * 1000)
        return {
            "group.id": group_of(self._spec.name),
            "group.instance.id": self._spec.instance,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": "read_committed",  # only stable positions
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "partition.assignment.strategy": "roundrobin",
            "topic.metadata.refresh.interval.ms": refresh_ms,
            "metadata.max.age.ms": max(3 * refresh_ms, 3000),
            **quiet(self._side.settings),
            "error_cb": self._trouble,
        }

    def _trouble(self, error: Any) -> None:
        """librdkafka's report; only what is fatal counts here."""
        if error.fatal() or error.code() in TAKEN_OVER:
            self.fatal = error

    def subscribe(self, topics: Sequence[str]) -> None:
        """Shares these topics with the other instances, and the map's, whose holder looks after
        groups.
        """
        self._consumer.subscribe(
            [self._map_topic, *topics],
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._revoked,
        )

    def poll(self, within_s: float) -> None:
        """Lets the group's callbacks run. Raises RefusedError; see `fatal`, too."""
        event: Any = self._consumer.poll(within_s)
        error = None if event is None else event.error()
        if error is None:
            return
        if error.code() in NEEDED:
            raise refused(self._spec, self._side, error, None)
        if error.code() == KafkaError._FATAL:
            # A consumer's callback is not called with it, and its code is only in the text.
            fenced = KafkaError(KafkaError.FENCED_INSTANCE_ID)
            self.fatal = fenced if fenced.str() in error.str() else error

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        consumer.assign(
            [PartitionAt(each.topic, each.partition, OFFSET_END) for each in partitions]
        )
        if partitions:
            consumer.pause(partitions)
        self._held = frozenset(TopicPartition(each.topic, each.partition) for each in partitions)
        self._on_change()

    def _revoked(self, consumer: Any, _partitions: list[Any]) -> None:
        consumer.unassign()
        self._held = frozenset()
        self._on_change()

    @property
    def looks_after_groups(self) -> bool:
        """Whether this instance holds the map's partition."""
        return TopicPartition(self._map_topic, 0) in self._held

    @property
    def shares(self) -> frozenset[TopicPartition]:
        """The mirrored partitions that this instance holds."""
        return frozenset(each for each in self._held if each.topic != self._map_topic)

    def positions(
        self, partitions: Sequence[TopicPartition], within_s: float
    ) -> dict[TopicPartition, Position] | None:
        """Those that have one; None if they are not stable yet. Raises LibrdkafkaError."""
        try:
            found = self._consumer.committed(
                [PartitionAt(*each) for each in partitions], timeout=within_s
            )
        except KafkaException as error:
            if error.args[0].code() in UNSTABLE:
                return None
            raise failure(error, "read the positions at the target") from error
        if any(each.error is not None for each in found):
            return None
        positions = {}
        for each in found:
            if each.offset < 0:
                continue
            position = read_position(each.offset, each.leader_epoch, metadata_of(each))
            if position is not None:
                positions[TopicPartition(each.topic, each.partition)] = position
        return positions

    def generation(self) -> Any:
        """What a transaction says of the membership when it commits positions (KIP-447)."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leaves the group."""
        # librdkafka's close() may never return if an assignment arrives within it, as of a mirror
        # that has nothing to do and ends while it still joins: it is taken before.
        with suppress(KafkaException):
            # Refused to a member whose name another process has.
            self._consumer.unsubscribe()
        until = time.monotonic() + LEAVE_WITHIN_S
        while self._consumer.poll(LEAVE_POLL_S) is not None or self._held:
            if time.monotonic() > until:
                break
        self._consumer.close()
