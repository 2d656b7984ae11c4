"""The description of a cluster: its brokers, its controller, and partitions with a problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ottla.cli.chunks import in_chunks
from ottla.cli.client import Connection, is_internal
from ottla.cli.configs import describe_configs
from ottla.cli.plural import plural
from ottla.cli.rows import column, only_json, row, show_rows
from ottla.cli.screen import say, show_table
from ottla.cli.topic.description import NO_TOPICS
from ottla.client.admin.cluster import any_brokers_view, controller_epoch
from ottla.client.errors import ClientError
from ottla.client.metadata import Broker

MAX_TOPICS_ASKED: Final = 500
MIN_IN_SYNC: Final = "min.insync.replicas"
MAX_SHOWN: Final = 50


class KnownCluster(NamedTuple):
    """What one broker reports about the cluster."""

    id: str
    controller: int | None
    controller_epoch: int | None
    """None if the brokers do not know it."""
    controller_answers: bool | None
    """None if unknown: only librdkafka can use the security settings."""
    nodes: list[Broker]


def described_cluster(connection: Connection) -> KnownCluster:
    """The brokers and the controller, even while there is no controller."""
    try:
        view = any_brokers_view(connection.client)
    except ClientError:
        return cluster_of_librdkafka(connection)
    lead = view.brokers.get(view.controller) if view.controller is not None else None
    alive = lead is not None and connection.client.is_answering(lead.address)
    nodes = list(view.brokers.values())
    return KnownCluster(view.id, view.controller, known_epoch(connection), alive, nodes)


def known_epoch(connection: Connection) -> int | None:
    """The controller's epoch, or None if the brokers do not say."""
    try:
        return controller_epoch(connection.client)
    except ClientError:
        return None


def cluster_of_librdkafka(connection: Connection) -> KnownCluster:
    """The cluster as its controller describes it. Raises Failed."""
    described = connection.wait(
        connection.admin.describe_cluster(request_timeout=connection.answer_timeout_s),
        "describe the cluster",
    )
    nodes = [Broker(each.id, each.host, each.port, each.rack) for each in described.nodes]
    known = described.controller is not None and described.controller.id >= 0
    lead = described.controller.id if known else None
    return KnownCluster(described.cluster_id, lead, None, None, nodes)


@row
class PartitionState:
    """A partition; `leader` is None if it has none."""

    topic: str
    partition: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]
    min_in_sync: int

    @property
    def is_under_min_isr(self) -> bool:
        """Whether the partition currently rejects acks=all.

        Of min.insync.replicas, no more counts than there are replicas (Partition.effectiveMinIsr
        in Apache Kafka): __transaction_state asks for two, and has one on a single broker.
        """
        return len(self.in_sync) < min(self.min_in_sync, len(self.replicas))

    @property
    def is_under_replicated(self) -> bool:
        return len(self.in_sync) < len(self.replicas)


@row
class BrokerState:
    """A broker, which may be down but hold replicas."""

    id: int = column("broker")
    address: str | None = column(in_json=False)
    host: str | None = only_json()
    port: int | None = only_json()
    rack: str | None = column(is_optional=True)
    live: bool = only_json()
    leaders: int
    replicas: int
    in_sync: int
    role: str = column("", in_json=False)


@row
class Description:
    """A cluster. `controller_epoch` and `controller_answers` are None if they are not known."""

    cluster_id: str
    controller: int | None
    controller_epoch: int | None
    controller_answers: bool | None
    brokers: list[BrokerState]
    topics: int
    partitions: int
    offline: list[PartitionState]
    under_min_isr: list[PartitionState]
    under_replicated: list[PartitionState]

    @property
    def live_brokers(self) -> int:
        return sum(each.live for each in self.brokers)

    def show(self) -> None:
        lead = controller_text(self)
        show_rows(
            self.brokers,
            title=f"cluster {self.cluster_id}: {plural(self.live_brokers, 'broker')}, {lead}",
        )
        say("")
        if self.controller_answers is False:
            say("This is the last known state: there is no controller to ask.")
        show_partitions(self)


def description_of(connection: Connection) -> Description:
    """Brokers with their replicas, the controller, and each partition with a problem."""
    topics = connection.topics()
    cluster = described_cluster(connection)
    alone = cluster.controller_answers is False
    least = min_in_sync(connection, sorted(topics), alone=alone)
    return description(cluster, len(topics), list(partition_states(topics, least)))


def description(
    cluster: KnownCluster, topics: int, partitions: Sequence[PartitionState]
) -> Description:
    return Description(
        cluster.id,
        cluster.controller,
        cluster.controller_epoch,
        cluster.controller_answers,
        broker_states(cluster.nodes, partitions, cluster.controller),
        topics,
        len(partitions),
        [each for each in partitions if each.leader is None],
        [each for each in partitions if each.is_under_min_isr],
        [each for each in partitions if each.is_under_replicated],
    )


def min_in_sync(
    connection: Connection, topics: Sequence[str], *, alone: bool = False
) -> dict[str, int]:
    """`min.insync.replicas` by topic. `alone`: there is no controller to ask."""
    found: dict[str, int] = {}
    for names in in_chunks(topics, MAX_TOPICS_ASKED):
        for name, entries in describe_configs(connection, "topic", names, alone=alone).items():
            values = {entry.name: entry.value for entry in entries}
            found[name] = int(values.get(MIN_IN_SYNC) or 1)
    return found


def partition_states(topics: Any, least: dict[str, int]) -> Iterator[PartitionState]:
    for name in sorted(topics):
        for number, each in sorted(topics[name].partitions.items()):
            yield PartitionState(
                name,
                number,
                each.leader if each.leader >= 0 else None,
                list(each.replicas),
                list(each.isrs),
                least.get(name, 1),
            )


def broker_states(
    nodes: Sequence[Broker], partitions: Sequence[PartitionState], controller: int | None
) -> list[BrokerState]:
    """All brokers, including those that are down but hold replicas."""
    live = {node.id: node for node in nodes}
    held = {number for each in partitions for number in each.replicas}
    states = []
    for number in sorted(live.keys() | held):
        node = live.get(number)
        states.append(
            BrokerState(
                number,
                f"{node.host}:{node.port}" if node is not None else None,
                node.host if node is not None else None,
                node.port if node is not None else None,
                node.rack if node is not None else None,
                node is not None,
                sum(each.leader == number for each in partitions),
                sum(number in each.replicas for each in partitions),
                sum(number in each.in_sync for each in partitions),
                "down" if node is None else "controller" if number == controller else "",
            )
        )
    return states


def controller_text(cluster: Description) -> str:
    if cluster.controller is None:
        return "no controller"
    epoch = cluster.controller_epoch
    shown = "" if epoch is None else f" (epoch {epoch})"
    silent = " NOT RESPONDING" if cluster.controller_answers is False else ""
    return f"controller {cluster.controller}{shown}{silent}"


def show_partitions(cluster: Description) -> None:
    """Print each partition with a problem, the worst first, or one line if there is none.

    Internal topics follow, with one row for all partitions of a topic in one state: fifty rows of
    __consumer_offsets would hide the user's topics.
    """
    states: dict[tuple[str, int], str] = {}
    troubled: dict[tuple[str, int], PartitionState] = {}
    for partitions, state in (
        (cluster.offline, "offline"),
        (cluster.under_min_isr, "under min isr"),
        (cluster.under_replicated, "under-replicated"),
    ):
        for each in partitions:
            place = (each.topic, each.partition)
            states.setdefault(place, state)
            troubled.setdefault(place, each)
    if not cluster.partitions:
        say(NO_TOPICS)
        return
    if not troubled:
        number = plural(cluster.partitions, "partition")
        say(f"{number}, all with a leader and all replicas in sync.")
        return
    own = [
        [
            each.topic,
            each.partition,
            states[place],
            each.leader,
            " ".join(map(str, each.replicas)),
            " ".join(map(str, each.in_sync)),
        ]
        for place, each in troubled.items()
        if not is_internal(each.topic)
    ]
    internal = Counter(
        (place[0], state) for place, state in states.items() if is_internal(place[0])
    )
    sums: list[list[str | int | None]] = [
        [topic, plural(count, "partition"), state, "", "", ""]
        for (topic, state), count in internal.items()
    ]
    show_table(
        ["topic", "partition", "state", "leader", "replicas", "in sync"],
        own[:MAX_SHOWN] + sums,
        title=f"{len(troubled):,} of {plural(cluster.partitions, 'partition')} with problems",
    )
    if len(own) > MAX_SHOWN:
        say(f"{len(own) - MAX_SHOWN:,} more. To see all: ottla cluster describe --json")
