"""The context of a request: what every handler of this room gets with its request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from ottla.cluster.acl_store import AclStore
from ottla.cluster.cluster_view import ClusterView
from ottla.cluster.controller import Controller
from ottla.cluster.departed import DepartedBrokers
from ottla.cluster.producer_ids import ProducerIds
from ottla.cluster.topic_creation import TopicCreation
from ottla.config import BrokerConfig
from ottla.controller.image import ClusterImage
from ottla.coordinator.group_coordinator import GroupCoordinator
from ottla.coordinator.group_histories import GroupHistories
from ottla.coordinator.share_parts import ShareParts
from ottla.coordinator.transaction_coordinator import TransactionCoordinator
from ottla.coordinator.transaction_verifier import TransactionVerifier
from ottla.network.authorization import Authorization
from ottla.network.broker_identity import BrokerIdentity
from ottla.network.client_session import ClientSession
from ottla.network.peers import Peers
from ottla.network.request_context import RequestContext
from ottla.network.throttling import Throttling
from ottla.replica.disk_reads import DiskReads
from ottla.replica.fetch_session import FetchSessions
from ottla.replica.partitions import Partitions
from ottla.replica.shared_partitions import SharedPartitions
from ottla.replica.throttle import Throttle
from ottla.runtime.clock import Clock
from ottla.runtime.cpu_thread import CpuThread
from ottla.storage.storage_failure import StorageFailure
from ottla.timelines.recorder import TimelineRecorder


class Broker(Protocol):
    """The parts of a broker that handlers use."""

    config: BrokerConfig
    clock: Clock
    api_versions: tuple[tuple[int, int, int], ...]
    """Key, first and last version of each request type."""
    partitions: Partitions
    fetch_sessions: FetchSessions
    cpu_thread: CpuThread
    disk_reads: DiskReads
    leader_throttle: Throttle
    storage_failure: StorageFailure
    groups: GroupCoordinator
    histories: GroupHistories
    """Why groups rebalanced."""
    transactions: TransactionCoordinator
    transaction_verifier: TransactionVerifier
    shares: ShareParts
    shared_partitions: SharedPartitions
    producer_ids: ProducerIds
    timelines: TimelineRecorder
    controller: Controller
    topic_creation: TopicCreation
    view: ClusterView
    peers: Peers
    identity: BrokerIdentity
    authorization: Authorization | None
    """What clients may do; None if everything, because there is no authorizer."""
    acls: AclStore | None
    """The ACLs, if there is an authorizer."""
    throttling: Throttling
    """The quotas of clients."""
    departed: DepartedBrokers
    closing: bool
    """The broker is about to stop: waiting requests are answered at once."""

    image: ClusterImage
    """The cluster as this broker knows it now."""

    async def check_listeners(self, values: Mapping[str, str], *, reads_again: bool) -> None:
        """Raises ConfigError if the listeners cannot take these dynamic settings of this broker.
        `reads_again`: certificates in files that have changed are used at once.
        """

    def is_broker(self, session: ClientSession) -> bool:
        """Whether a broker of the cluster, or this one itself, is at the other end."""


Context: TypeAlias = RequestContext[Broker]
