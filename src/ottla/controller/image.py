"""The cluster as every broker sees it: brokers, topics, partitions, dynamic settings.

One object, changed only by `apply(delta)`, on one thread. `version` grows by one with each delta.
The objects it returns (TopicImage, PartitionState, BrokerImage) are never changed, only replaced,
so a reader may keep them while the image changes.

Ten thousand partitions cost about one reference each: partitions with the same leader, epochs and
replicas share one PartitionState.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from ottla.config.listener import Endpoint
from ottla.protocol.internal_topics import INTERNAL_TOPICS

NO_LEADER: Final = -1


class PartitionState(NamedTuple):
    """The leader and replicas of one partition."""

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
    """Replicas to be dropped when the reassignment completes; in `replicas` until then."""

    @property
    def is_reassigning(self) -> bool:
        """True while a reassignment is under way."""
        return bool(self.adding or self.removing)


@lru_cache(maxsize=4096)
def shared_state(state: PartitionState) -> PartitionState:
    """The one object shared by all equal states."""
    return state


@dataclass(frozen=True, slots=True)
class TopicImage:
    """One topic."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionState, ...]
    overrides: Mapping[str, str]
    """The settings of this topic, as text."""
    node_version: int = 0
    """Version of the topic's node (its assignment) in the coordination tree."""
    config_version: int | None = None
    """Version of the node of its settings; None if it has none."""

    @property
    def is_internal(self) -> bool:
        """True for the internal topics of the brokers."""
        return self.name in INTERNAL_TOPICS


class FeatureRange(NamedTuple):
    """The levels of one feature that a broker's software supports (KIP-584)."""

    feature: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A live broker."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    """The addresses for clients, by listener name."""
    rack: str | None = None
    epoch: int = -1
    """Identifies the registration: the czxid of its node (KIP-903)."""
    directory_id: str | None = None
    """The directory.id of its data folder; a new one means that the disk was lost."""
    first_epoch: int = -1
    """The epoch of its process's first registration; -1 if this is the first."""
    features: tuple[FeatureRange, ...] = ()
    """The features that its software supports."""
    previous_epoch: int = field(default=-1, compare=False)
    """The epoch in which the process before stopped cleanly, -1 if it did not (KIP-966). Only the
    controller needs it, and reads it from the registration: deltas do not have it."""

    def is_same_incarnation(self, epoch: int) -> bool:
        """Whether the process that registered under `epoch` is this one: its session expired, but
        it lost no records.
        """
        return epoch == self.epoch or 0 <= self.first_epoch <= epoch

    def endpoint(self, listener: str) -> Endpoint | None:
        """The address of the listener with that name."""
        return next((each for each in self.endpoints if each.name == listener), None)

    def inter_broker_endpoint(self, listener: str) -> Endpoint | None:
        """The address for other brokers: the listener with that name, else the first. (A broker
        with other listener names than ours is being reconfigured.)
        """
        return self.endpoint(listener) or (self.endpoints[0] if self.endpoints else None)


@dataclass(frozen=True, slots=True)
class ConfigImage:
    """Dynamic settings of one broker, or of all brokers."""

    values: Mapping[str, str]
    version: int | None = None
    """Version of the node that holds them; None if there is no node."""


@dataclass(frozen=True, slots=True)
class DirectoryImage:
    """How a controller last saw a broker, live or not."""

    directory_id: str
    """Its data folder."""
    epoch: int
    """The epoch of its registration; another one means a restart, even if no controller saw it."""
    version: int
    """Version of the node that holds it."""


NO_CONFIG: Final = ConfigImage({})
EVERY_BROKER: Final = ""
"""Name of the resource for all brokers; a single broker's name is its number."""


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """A topic was created, with its partitions."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic is gone."""

    topic: TopicImage
    by_request: bool = True
    """The controller deleted it. False: a newer image lacks it, which proves nothing: its tree may
    be damaged, or an older one (`cluster.strays`).
    """


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """A topic has more partitions than before; `topic` is the new image."""

    topic: TopicImage
    first: int
    """Number of the first added partition."""


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """The leaders, epochs or in-sync replicas of some partitions have changed."""

    topic: TopicImage
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicConfigChanged:
    """A topic's settings have changed."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class BrokerConfigChanged:
    """The dynamic settings of one broker, or of all (EVERY_BROKER), have changed."""

    resource: str
    config: ConfigImage


@dataclass(frozen=True, slots=True)
class UserConfigChanged:
    """What is kept of one user has changed: credentials and quotas."""

    user: str
    config: ConfigImage


@dataclass(frozen=True, slots=True)
class GroupConfigChanged:
    """The settings of a group have changed."""

    group: str
    config: ConfigImage


@dataclass(frozen=True, slots=True)
class QuotaConfigChanged:
    """A node of quotas other than a user's has changed; `path` is its path below /config."""

    path: str
    config: ConfigImage


@dataclass(frozen=True, slots=True)
class BrokerAppeared:
    """A broker is live."""

    broker: BrokerImage


@dataclass(frozen=True, slots=True)
class BrokerVanished:
    """A broker is no longer live."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """Another broker is the controller; its epoch fences the previous one."""

    broker_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ProducerIdsReserved:
    """A block of producer ids was reserved; the next one starts at `next_id`."""

    next_id: int
    version: int | None


@dataclass(frozen=True, slots=True)
class FeaturesChanged:
    """The finalized levels of the cluster's features; `version` is that of their node."""

    levels: Mapping[str, int]
    version: int | None


@dataclass(frozen=True, slots=True)
class DirectoryChanged:
    """A broker has another data folder or epoch than before; None if it was never seen."""

    broker_id: int
    directory: DirectoryImage | None


MetadataDelta = (
    TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionsChanged
    | TopicConfigChanged
    | BrokerConfigChanged
    | UserConfigChanged
    | GroupConfigChanged
    | QuotaConfigChanged
    | BrokerAppeared
    | BrokerVanished
    | ControllerChanged
    | ProducerIdsReserved
    | FeaturesChanged
    | DirectoryChanged
)


class ClusterImage:
    """The whole cluster at one version. Look-ups return None for what does not exist."""

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.version = 0
        self.controller_id = NO_LEADER
        self.controller_epoch = 0
        self.brokers: dict[int, BrokerImage] = {}
        self.topics: dict[str, TopicImage] = {}
        self.topics_version = 0
        """Grows when a topic is created, deleted or gets more partitions."""
        self.topics_by_id: dict[UUID, TopicImage] = {}
        self.configs: dict[str, ConfigImage] = {}
        """By resource: EVERY_BROKER or a broker's number as text."""
        self.users: dict[str, ConfigImage] = {}
        """What is kept of each user, by name; see `users`. "" has the quotas of all others."""
        self.groups: dict[str, ConfigImage] = {}
        """The settings of those groups that have their own; read by `settings_of_group`."""
        self.quotas: dict[str, ConfigImage] = {}
        """The quotas of client ids and addresses, by path below /config; see `quotas`."""
        self.directories: dict[int, DirectoryImage] = {}
        self.next_producer_id = 0
        self.producer_ids_version: int | None = None
        self.features: Mapping[str, int] = {}
        """Finalized levels by feature; a feature at level 0 is left out (KIP-584)."""
        self.features_version: int | None = None
        """Version of the node that holds them; None if there is no node."""
        self._collidable: dict[str, set[str]] = {}

    def topic(self, name: str) -> TopicImage | None:
        """The topic with that name."""
        return self.topics.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        """The topic with that id."""
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
        """A topic whose name differs only in "." and "_" (KAFKA-2337)."""
        return min(self._collidable.get(name.replace(".", "_"), ()), default=None)

    def apply(self, delta: MetadataDelta) -> None:
        """Apply one delta."""
        match delta:
            case TopicCreated(topic):
                assert topic.name not in self.topics, topic.name
                self._put(topic)
                self.topics_version += 1
                if "." in topic.name or "_" in topic.name:
                    self._collidable.setdefault(topic.name.replace(".", "_"), set()).add(topic.name)
            case TopicDeleted(topic, _):
                del self.topics[topic.name], self.topics_by_id[topic.topic_id]
                self.topics_version += 1
                names = self._collidable.get(topic.name.replace(".", "_"), set())
                names.discard(topic.name)
                if not names:
                    self._collidable.pop(topic.name.replace(".", "_"), None)
            case PartitionsAdded(topic) | PartitionsChanged(topic) | TopicConfigChanged(topic):
                assert topic.name in self.topics, topic.name
                self._put(topic)
                self.topics_version += isinstance(delta, PartitionsAdded)
            case BrokerConfigChanged(name, config):
                _set(self.configs, name, config)
            case UserConfigChanged(name, config):
                _set(self.users, name, config)
            case GroupConfigChanged(name, config):
                _set(self.groups, name, config)
            case QuotaConfigChanged(name, config):
                _set(self.quotas, name, config)
            case BrokerAppeared(broker):
                self.brokers[broker.broker_id] = broker
            case BrokerVanished(broker_id):
                self.brokers.pop(broker_id, None)
            case ControllerChanged(broker_id, epoch):
                self.controller_id, self.controller_epoch = broker_id, epoch
            case ProducerIdsReserved(next_id, version):
                self.next_producer_id, self.producer_ids_version = next_id, version
            case FeaturesChanged(levels, version):
                self.features, self.features_version = levels, version
            case DirectoryChanged(broker_id, directory):
                _put_directory(self.directories, broker_id, directory)
        self.version += 1

    def _put(self, topic: TopicImage) -> None:
        states = tuple(map(shared_state, topic.partitions))
        kept = replace(topic, partitions=states)
        self.topics[topic.name] = kept
        self.topics_by_id[topic.topic_id] = kept


def _put_directory(
    directories: dict[int, DirectoryImage], broker_id: int, directory: DirectoryImage | None
) -> None:
    if directory is None:
        directories.pop(broker_id, None)
    else:
        directories[broker_id] = directory


def _set(configs: dict[str, ConfigImage], name: str, config: ConfigImage) -> None:
    if config == NO_CONFIG:
        configs.pop(name, None)
    else:
        configs[name] = config
