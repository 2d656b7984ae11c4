"""The topics of a broker or cluster in a test: create them, and force what normally takes time."""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ottla.testing.errors import KitError, is_for_the_test
from ottla.testing.fault_rule import KIT_CLIENT_ID
from ottla.testing.faults import Faults
from ottla.testing.record import Expected, ReadRecord
from ottla.testing.topic import Topic, new_producer

if TYPE_CHECKING:
    from confluent_kafka import Producer

__tracebackhide__ = is_for_the_test

CREATE_TIMEOUT_S: Final = 30.0
MAX_NAME: Final = 200
_numbers: Final = itertools.count(1)


class Topics(Faults):
    """A part of `Broker` and `Cluster`."""

    def __init__(self) -> None:
        super().__init__()
        self._producer: Producer | None = None

    @property
    @abstractmethod
    def bootstrap(self) -> str:
        """The addresses for clients, `HOST:PORT,...`."""

    @property
    def kit_settings(self) -> Mapping[str, str]:
        """librdkafka's settings about security with which the kit itself connects."""
        return {}

    def topic(self, name: str) -> Topic:
        """A topic that exists, or that its first producer creates."""
        if self._producer is None:
            self._producer = new_producer(self.bootstrap, self.kit_settings)
        return Topic(name, self.bootstrap, self._producer, self.kit_settings)

    def create_topic(
        self,
        name: str | None = None,
        *,
        partitions: int = 1,
        replicas: int = -1,
        config: Mapping[str, object] | None = None,
    ) -> Topic:
        """Create a topic; without `name` it has a new one. `replicas` -1 means the broker's
        default. Raises KitError with the broker's reason.
        """
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        name = name or unique_name("topic")
        settings = {key: str(value) for key, value in (config or {}).items()}
        admin = AdminClient(
            {
                "bootstrap.servers": self.bootstrap,
                "client.id": KIT_CLIENT_ID,
                "log_level": 2,
                **self.kit_settings,
            }
        )
        new = NewTopic(name, partitions, replicas, config=settings)
        try:
            admin.create_topics([new], request_timeout=CREATE_TIMEOUT_S)[name].result()
        except KafkaException as error:
            raise KitError(f"cannot create topic {name}: {error.args[0].str()}") from None
        return self.topic(name)

    def produce(self, topic: str, *values: Any, **options: Any) -> list[ReadRecord]:
        """`Topic.produce`."""
        return self.topic(topic).produce(*values, **options)

    def consume(self, topic: str, count: int | None = None, **options: Any) -> list[ReadRecord]:
        """`Topic.consume`."""
        return self.topic(topic).consume(count, **options)

    def assert_records(self, topic: str, expected: Iterable[Expected], **options: Any) -> None:
        """`Topic.assert_records`."""
        self.topic(topic).assert_records(expected, **options)

    def roll(self, topic: str) -> None:
        """Close the active segment of each partition of the topic and begin a new one: only closed
        segments are compacted, or removed by retention."""
        self._ask_all("roll", topic=topic)

    def retain(self) -> None:
        """Remove now what retention no longer keeps; brokers do this every five minutes."""
        self._ask_all("retain")

    def compact(self, topic: str) -> None:
        """Roll the topic and compact it now, whatever its `min.cleanable.dirty.ratio`. Raises
        KitError if its `cleanup.policy` is not compact."""
        self._ask_all("compact", topic=topic)

    def rebalance(self, group: str) -> None:
        """Make a group rebalance. In a classic group it begins now, and all members join again with
        their next heartbeat. In a consumer or share group one more member joins, takes partitions
        from others, and leaves: returns after that, which takes as long as the others' heartbeat
        interval. In a streams group one member is taken for dead, as by `expire_member`: others get
        its tasks now, and it joins again with its next heartbeat. Raises KitError if the group has
        no members, or nothing would move.
        """
        from ottla.testing.rebalance import force_rebalance

        force_rebalance(self.bootstrap.split(",")[0], group, self.kit_settings)

    def expire_member(self, group: str, client_id: str | None = None) -> str:
        """A member of a group of any kind is taken for dead: its partitions go to others, and its
        next request is refused with UNKNOWN_MEMBER_ID. Returns its member id. Without `client_id`
        the group must have one member only. Raises KitError if there is not exactly one such.
        """
        from ottla.testing.expired_member import expire_member

        return expire_member(self.bootstrap, group, client_id, self.kit_settings)

    def fence_member(self, group: str, client_id: str | None = None) -> str:
        """A member's next request is refused as that of one that another has replaced:
        FENCED_INSTANCE_ID for a classic member with a group.instance.id, FENCED_MEMBER_EPOCH for
        one of a consumer, share or streams group. Returns its member id. Without `client_id` the
        group must have one member only. Raises KitError if there is not exactly one such, or it is
        a classic one without a group.instance.id.
        """
        from ottla.testing.fenced_member import fence_member

        return fence_member(self.bootstrap, group, client_id, self.kit_settings)

    def fence_producer(self, transactional_id: str) -> None:
        """The producer with this transactional id is fenced, as by a new one of the same id: its
        open transaction is aborted, and its next request is refused with PRODUCER_FENCED. Raises
        KitError with the broker's reason.
        """
        from ottla.testing.fenced_producer import fence_producer

        fence_producer(self.bootstrap, transactional_id, self.kit_settings)

    def _ask_all(self, operation: str, **arguments: Any) -> None:
        for each in self.controls():
            each.ask(operation, **arguments)


def unique_name(text: str) -> str:
    """A topic's name that this process has not used; `text` is the part for people to read."""
    return f"{re.sub('[^a-zA-Z0-9._-]+', '-', text)[:MAX_NAME].strip('-')}-{next(_numbers)}"
