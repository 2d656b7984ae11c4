"""The cluster as every broker sees it: brokers, topics, partitions, dynamic settings.

One object, changed only by `apply(delta)`, on one thread. `version` grows by one with each delta.
What is handed out (TopicImage, PartitionState, BrokerImage) is never changed, only replaced,
so a reader may keep it while the image moves on.

Ten thousand partitions cost about one reference each: partitions with the same leader, epochs and
replicas share one PartitionState.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from ottla.config.listener import Endpoint
from ottla.protocol.internal_topics import INTERNAL_TOPICS

NO_LEADER: Final = -1


class PartitionState(NamedTuple):
    """Who leads a partition and who copies it."""

    leader: int
    """Broker number, or NO_LEADER."""
    leader_epoch: int
    replicas: tuple[int, ...]
    """In assignment order: the first is the preferred leader."""
    isr: tuple[int, ...]
    partition_epoch: int
    """Version of the partition's state node, for compare-and-set (KIP-497)."""
    adding: tuple[int, ...] = ()
    """Replicas that a reassignment adds; they are in `replicas` too (KIP-455)."""
    removing: tuple[int, ...] = ()
    """Replicas that leave when the reassignment completes; in `replicas` until then."""

    @property
    def is_reassigning(self) -> bool:
        """True while a reassignment is under way."""
        return bool(self.adding or self.removing)


@lru_cache(maxsize=4096)
def shared_state(state: PartitionState) -> PartitionState:
    """The one object for all equal states."""
    return state


@dataclass(frozen=True, slots=True)
class TopicImage:
    """One topic."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionState, ...]
    overrides: Mapping[str, str]
    """The settings set for this topic, as text."""
    node_version: int = 0
    """Version of the topic's node (its assignment) in the coordination tree."""
    config_version: int | None = None
    """Version of its settings' node; None where it has none."""

    @property
    def is_internal(self) -> bool:
        """True for the topics that the brokers keep for themselves."""
        return self.name in INTERNAL_TOPICS


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A broker that is alive."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    """Where clients reach it, by listener name."""
    rack: str | None = None
    epoch: int = -1
    """Which registration this is: the czxid of its node (KIP-903)."""
    directory_id: str | None = None
    """The directory.id of its data folder; another one means that the disk was lost."""
    first_epoch: int = -1
    """The epoch of its process's first registration; -1 where this is it."""

    def is_same_life(self, epoch: int) -> bool:
        """True where whoever was registered under `epoch` was this very process: its session ended,
        and it has lost nothing by that.
        """
        return epoch == self.epoch or 0 <= self.first_epoch <= epoch

    def endpoint(self, listener: str) -> Endpoint | None:
        """Its address on the listener of that name."""
        return next((each for each in self.endpoints if each.name == listener), None)

    def inter_broker_endpoint(self, listener: str) -> Endpoint | None:
        """Where other brokers reach this one: its listener of that name, else its first (a broker
        with other listener names than ours is one that is being reconfigured).
        """
        return self.endpoint(listener) or (self.endpoints[0] if self.endpoints else None)


@dataclass(frozen=True, slots=True)
class ConfigImage:
    """Dynamic settings of one broker, or of all of them."""

    values: Mapping[str, str]
    version: int | None = None
    """Version of the node that holds them; None where there is none."""


@dataclass(frozen=True, slots=True)
class DirectoryImage:
    """How a broker was last seen by a controller, whether it is alive or not."""

    directory_id: str
    """Its data folder."""
    epoch: int
    """Its registration: another one has begun anew, also where no controller saw it."""
    version: int
    """Version of the node that holds it."""


NO_CONFIG: Final = ConfigImage({})
EVERY_BROKER: Final = ""
"""Name of the resource that stands for all brokers; a broker's own is its number."""


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """A topic is there, with its partitions."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic is gone."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """A topic has more partitions than before; `topic` is the new image."""

    topic: TopicImage
    first: int
    """Number of the first new partition."""


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """Leaders, epochs or in-sync replicas of some partitions are new."""

    topic: TopicImage
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicConfigChanged:
    """A topic's settings are new."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class BrokerConfigChanged:
    """The dynamic settings of one broker, or of all (EVERY_BROKER), are new."""

    resource: str
    config: ConfigImage


@dataclass(frozen=True, slots=True)
class BrokerAppeared:
    """A broker is alive."""

    broker: BrokerImage


@dataclass(frozen=True, slots=True)
class BrokerVanished:
    """A broker is no more."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """Another broker is the controller; its epoch fences the one before."""

    broker_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ProducerIdsReserved:
    """A block of producer ids was reserved: the next one begins at `next_id`."""

    next_id: int
    version: int | None


@dataclass(frozen=True, slots=True)
class DirectoryChanged:
    """A broker has another data folder or epoch than before; None: it was never seen."""

    broker_id: int
    directory: DirectoryImage | None


MetadataDelta = (
    TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionsChanged
    | TopicConfigChanged
    | BrokerConfigChanged
    | BrokerAppeared
    | BrokerVanished
    | ControllerChanged
    | ProducerIdsReserved
    | DirectoryChanged
)


class ClusterImage:
    """See the module's text. Look-ups answer None for what is not there."""

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.version = 0
        self.controller_id = NO_LEADER
        self.controller_epoch = 0
        self.brokers: dict[int, BrokerImage] = {}
        self.topics: dict[str, TopicImage] = {}
        self.topics_by_id: dict[UUID, TopicImage] = {}
        self.configs: dict[str, ConfigImage] = {}
        """By resource: EVERY_BROKER or a broker's number as text."""
        self.directories: dict[int, DirectoryImage] = {}
        self.next_producer_id = 0
        self.producer_ids_version: int | None = None
        self._collidable: dict[str, set[str]] = {}

    def topic(self, name: str) -> TopicImage | None:
        """The topic of that name."""
        return self.topics.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        """The topic of that id."""
        return self.topics_by_id.get(topic_id)

    def partition(self, name: str, index: int) -> PartitionState | None:
        """One partition's state."""
        topic = self.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index]

    def config(self, resource: str) -> ConfigImage:
        """The dynamic settings of EVERY_BROKER or of a broker's number."""
        return self.configs.get(resource, NO_CONFIG)

    def colliding(self, name: str) -> str | None:
        """A topic whose name differs from this one only in "." and "_" (KAFKA-2337)."""
        return min(self._collidable.get(name.replace(".", "_"), ()), default=None)

    def apply(self, delta: MetadataDelta) -> None:
        """Apply one delta."""
        match delta:
            case TopicCreated(topic):
                assert topic.name not in self.topics, topic.name
                self._put(topic)
                if "." in topic.name or "_" in topic.name:
                    self._collidable.setdefault(topic.name.replace(".", "_"), set()).add(topic.name)
            case TopicDeleted(topic):
                del self.topics[topic.name], self.topics_by_id[topic.topic_id]
                names = self._collidable.get(topic.name.replace(".", "_"), set())
                names.discard(topic.name)
                if not names:
                    self._collidable.pop(topic.name.replace(".", "_"), None)
            case PartitionsAdded(topic) | PartitionsChanged(topic) | TopicConfigChanged(topic):
                assert topic.name in self.topics, topic.name
                self._put(topic)
            case BrokerConfigChanged(resource, config):
                if config == NO_CONFIG:
                    self.configs.pop(resource, None)
                else:
                    self.configs[resource] = config
            case BrokerAppeared(broker):
                self.brokers[broker.broker_id] = broker
            case BrokerVanished(broker_id):
                self.brokers.pop(broker_id, None)
            case ControllerChanged(broker_id, epoch):
                self.controller_id, self.controller_epoch = broker_id, epoch
            case ProducerIdsReserved(next_id, version):
                self.next_producer_id, self.producer_ids_version = next_id, version
            case DirectoryChanged(broker_id, directory):
                if directory is None:
                    self.directories.pop(broker_id, None)
                else:
                    self.directories[broker_id] = directory
        self.version += 1

    def _put(self, topic: TopicImage) -> None:
        states = tuple(map(shared_state, topic.partitions))
        kept = replace(topic, partitions=states)
        self.topics[topic.name] = kept
        self.topics_by_id[topic.topic_id] = kept
