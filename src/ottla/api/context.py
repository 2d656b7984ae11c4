"""What every handler of this room is given beside its request, and what it finds there."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from ottla.broker.clock import Clock
from ottla.broker.cluster_view import ClusterView
from ottla.broker.controller import Controller
from ottla.broker.coordinator import GroupCoordinators
from ottla.broker.departed import DepartedBrokers
from ottla.broker.disk_reads import DiskReads
from ottla.broker.fetch_session import FetchSessions
from ottla.broker.journey import Journey
from ottla.broker.partitions import Partitions
from ottla.broker.producer_ids import ProducerIds
from ottla.broker.storage_failure import StorageFailure
from ottla.broker.throttle import Throttle
from ottla.broker.topic_creation import TopicCreation
from ottla.config import BrokerConfig
from ottla.controller.image import ClusterImage
from ottla.network.peers import Peers
from ottla.network.request_context import RequestContext


class Broker(Protocol):
    """The parts of a broker that handlers use."""

    config: BrokerConfig
    clock: Clock
    api_versions: tuple[tuple[int, int, int], ...]
    """Key, first and last version of each request type."""
    features_epoch: int
    partitions: Partitions
    fetch_sessions: FetchSessions
    disk_reads: DiskReads
    leader_throttle: Throttle
    storage_failure: StorageFailure
    groups: GroupCoordinators
    producer_ids: ProducerIds
    journey: Journey
    controller: Controller
    topic_creation: TopicCreation
    view: ClusterView
    peers: Peers
    departed: DepartedBrokers
    closing: bool
    """The broker is about to stop: requests that wait are answered at once."""

    @property
    def image(self) -> ClusterImage:
        """The cluster as this broker knows it now."""


Context: TypeAlias = RequestContext[Broker]
