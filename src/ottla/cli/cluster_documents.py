"""The description of a cluster: the document that `--json` prints and the tables are built from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ottla.cli.chunks import in_chunks
from ottla.cli.client import Connection, is_internal
from ottla.cli.configs import describe_configs
from ottla.cli.plural import plural
from ottla.cli.screen import say, show_table
from ottla.cli.topic.description import NO_TOPICS
from ottla.client.admin.cluster import any_brokers_view, controller_epoch
from ottla.client.errors import ClientError
from ottla.client.metadata import Broker

MAX_TOPICS_ASKED: Final = 500
MIN_IN_SYNC: Final = "min.insync.replicas"
MAX_SHOWN: Final = 50


class Cluster(NamedTuple):
    """What one broker reports about the cluster."""

    id: str
    controller: int | None
    controller_epoch: int | None
    """None if the brokers do not know it."""
    controller_answers: bool | None
    """None if unknown: only librdkafka can use the security settings."""
    nodes: list[Broker]


def described_cluster(connection: Connection) -> Cluster:
    """The brokers and the controller, even while there is no controller."""
    try:
        view = any_brokers_view(connection.client)
    except ClientError:
        return cluster_of_librdkafka(connection)
    lead = view.brokers.get(view.controller) if view.controller is not None else None
    alive = lead is not None and connection.client.is_answering(lead.address)
    nodes = list(view.brokers.values())
    return Cluster(view.id, view.controller, known_epoch(connection), alive, nodes)


def known_epoch(connection: Connection) -> int | None:
    """The controller's epoch, or None if the brokers do not say."""
    try:
        return controller_epoch(connection.client)
    except ClientError:
        return None


def cluster_of_librdkafka(connection: Connection) -> Cluster:
    """The cluster as its controller describes it. Raises Failed."""
    described = connection.wait(
        connection.admin.describe_cluster(request_timeout=connection.answer_timeout_s),
        "describe the cluster",
    )
    nodes = [Broker(each.id, each.host, each.port, each.rack) for each in described.nodes]
    known = described.controller is not None and described.controller.id >= 0
    lead = described.controller.id if known else None
    return Cluster(described.cluster_id, lead, None, None, nodes)


def cluster_document(connection: Connection) -> dict[str, Any]:
    """Brokers with their replicas, the controller, and each partition with a problem."""
    topics = connection.topics()
    cluster = described_cluster(connection)
    alone = cluster.controller_answers is False
    least = min_in_sync(connection, sorted(topics), alone=alone)
    partitions = list(partition_documents(topics, least))
    return {
        "cluster_id": cluster.id,
        "controller": cluster.controller,
        "controller_epoch": cluster.controller_epoch,
        "controller_answers": cluster.controller_answers,
        "brokers": broker_documents(cluster.nodes, partitions),
        "topics": len(topics),
        "partitions": len(partitions),
        "offline": [each for each in partitions if each["leader"] is None],
        "under_min_isr": [each for each in partitions if is_under_min_isr(each)],
        "under_replicated": [each for each in partitions if is_under_replicated(each)],
    }


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


def partition_documents(topics: Any, least: dict[str, int]) -> Iterator[dict[str, Any]]:
    for name in sorted(topics):
        for number, each in sorted(topics[name].partitions.items()):
            yield {
                "topic": name,
                "partition": number,
                "leader": each.leader if each.leader >= 0 else None,
                "replicas": list(each.replicas),
                "in_sync": list(each.isrs),
                "min_in_sync": least.get(name, 1),
            }


def is_under_min_isr(partition: dict[str, Any]) -> bool:
    """Whether the partition currently rejects acks=all.

    Of min.insync.replicas, no more counts than there are replicas (Partition.effectiveMinIsr in
    Apache Kafka): __transaction_state asks for two, and has one on a single broker.
    """
    least = min(int(partition["min_in_sync"]), len(partition["replicas"]))
    return len(partition["in_sync"]) < least


def is_under_replicated(partition: dict[str, Any]) -> bool:
    return len(partition["in_sync"]) < len(partition["replicas"])


def broker_documents(
    nodes: Sequence[Broker], partitions: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """One document per broker, including brokers that are down but hold replicas."""
    live = {node.id: node for node in nodes}
    held = {number for each in partitions for number in each["replicas"]}
    documents = []
    for number in sorted(live.keys() | held):
        node = live.get(number)
        documents.append(
            {
                "id": number,
                "host": node.host if node is not None else None,
                "port": node.port if node is not None else None,
                "rack": node.rack if node is not None else None,
                "live": node is not None,
                "leaders": sum(each["leader"] == number for each in partitions),
                "replicas": sum(number in each["replicas"] for each in partitions),
                "in_sync": sum(number in each["in_sync"] for each in partitions),
            }
        )
    return documents


def show_cluster(document: dict[str, Any]) -> None:
    """Print the cluster as tables."""
    live = sum(each["live"] for each in document["brokers"])
    show_table(
        ["broker", "address", "rack", "leaders", "replicas", "in sync", ""],
        [
            [
                each["id"],
                f"{each['host']}:{each['port']}" if each["live"] else None,
                each["rack"],
                each["leaders"],
                each["replicas"],
                each["in_sync"],
                role(each, document["controller"]),
            ]
            for each in document["brokers"]
        ],
        title=f"cluster {document['cluster_id']}: {plural(live, 'broker')}, {controller(document)}",
        drop_empty=["rack"],
    )
    say("")
    if document["controller_answers"] is False:
        say("This is the last known state: there is no controller to ask.")
    show_partitions(document)


def role(broker: dict[str, Any], controller_id: int | None) -> str:
    if not broker["live"]:
        return "down"
    return "controller" if broker["id"] == controller_id else ""


def controller(document: dict[str, Any]) -> str:
    if document["controller"] is None:
        return "no controller"
    epoch = document["controller_epoch"]
    shown = "" if epoch is None else f" (epoch {epoch})"
    silent = " NOT RESPONDING" if document["controller_answers"] is False else ""
    return f"controller {document['controller']}{shown}{silent}"


def show_partitions(document: dict[str, Any]) -> None:
    """Print each partition with a problem, the worst first, or one line if there is none.

    Internal topics follow, with one row for all partitions of a topic in one state: fifty rows of
    __consumer_offsets would hide the user's topics.
    """
    states: dict[tuple[str, int], str] = {}
    troubled: dict[tuple[str, int], dict[str, Any]] = {}
    for kind, state in (
        ("offline", "offline"),
        ("under_min_isr", "under min isr"),
        ("under_replicated", "under-replicated"),
    ):
        for each in document[kind]:
            place = (each["topic"], each["partition"])
            states.setdefault(place, state)
            troubled.setdefault(place, each)
    if not document["partitions"]:
        say(NO_TOPICS)
        return
    if not troubled:
        number = plural(document["partitions"], "partition")
        say(f"{number}, all with a leader and all replicas in sync.")
        return
    own = [
        [
            each["topic"],
            each["partition"],
            states[place],
            each["leader"],
            " ".join(map(str, each["replicas"])),
            " ".join(map(str, each["in_sync"])),
        ]
        for place, each in troubled.items()
        if not is_internal(each["topic"])
    ]
    internal = Counter(
        (place[0], state) for place, state in states.items() if is_internal(place[0])
    )
    sums = [
        [topic, plural(count, "partition"), state, "", "", ""]
        for (topic, state), count in internal.items()
    ]
    show_table(
        ["topic", "partition", "state", "leader", "replicas", "in sync"],
        own[:MAX_SHOWN] + sums,
        title=f"{len(troubled):,} of {plural(document['partitions'], 'partition')} with problems",
    )
    if len(own) > MAX_SHOWN:
        say(f"{len(own) - MAX_SHOWN:,} more. To see all: ottla cluster describe --json")
