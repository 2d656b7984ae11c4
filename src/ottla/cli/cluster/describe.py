"""`ottla cluster describe`."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.existing import NO_TOPICS
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.cli.screen import say, show_table
from ottla.client.admin.cluster import BrokerState, ClusterState, PartitionState, cluster_state
from ottla.client.admin.topics import is_internal
from ottla.wording.plural import plural

MAX_SHOWN: Final = 50


@command()
@AS_JSON
@cluster_options
def describe(cluster: Cluster, as_json: bool) -> None:
    """Show brokers, the controller, and partitions that are offline or under-replicated."""
    emit(cluster_state(cluster.client), as_json=as_json, show=show_cluster)


def show_cluster(cluster: ClusterState) -> None:
    lead = controller_text(cluster)
    show_table(
        ["broker", "address", "rack", "leaders", "replicas", "in sync", ""],
        [
            [
                each.id,
                f"{each.host}:{each.port}" if each.live else None,
                each.rack,
                each.leaders,
                each.replicas,
                each.in_sync,
                role_text(each, cluster.controller),
            ]
            for each in cluster.brokers
        ],
        title=f"cluster {cluster.cluster_id}: {plural(cluster.live_brokers, 'broker')}, {lead}",
        drop_empty=["rack"],
    )
    say("")
    if not cluster.controller_answers:
        say("This is the last known state: there is no controller to ask.")
    show_partitions(cluster)


def role_text(broker: BrokerState, controller: int | None) -> str:
    if not broker.live:
        return "down"
    return "controller" if broker.id == controller else ""


def controller_text(cluster: ClusterState) -> str:
    if cluster.controller is None:
        return "no controller"
    epoch = cluster.controller_epoch
    shown = "" if epoch is None else f" (epoch {epoch})"
    silent = " NOT RESPONDING" if not cluster.controller_answers else ""
    return f"controller {cluster.controller}{shown}{silent}"


def show_partitions(cluster: ClusterState) -> None:
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
            partition = (each.topic, each.partition)
            states.setdefault(partition, state)
            troubled.setdefault(partition, each)
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
            states[partition],
            each.leader,
            " ".join(map(str, each.replicas)),
            " ".join(map(str, each.in_sync)),
        ]
        for partition, each in troubled.items()
        if not is_internal(each.topic)
    ]
    internal = Counter(
        (partition[0], state) for partition, state in states.items() if is_internal(partition[0])
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
