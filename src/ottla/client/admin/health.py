"""Whether a cluster works: the controller, brokers that hold replicas, every partition, and hanging
transactions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from ottla.client.addresses import Address
from ottla.client.admin.cluster import ClusterState, PartitionState, cluster_state
from ottla.client.admin.hanging_transactions import (
    HangingTransaction,
    find_hanging,
    hanging_transaction,
)
from ottla.client.admin.log_dirs import LogDir
from ottla.client.admin.losses import losses_of_all
from ottla.client.admin.transactions import Transactions
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.wording.plural import plural

MAX_TIMEOUT_MS: Final = 15 * 60_000
"""transaction.max.timeout.ms by default: a transaction with a later write may just be long."""
DAY_S: Final = 24 * 3600
LITTLE_PERCENT: Final = 10
"""Of a disk."""
EXPIRES_SOON_DAYS: Final = 30
HANGING: Final = "{} hanging: read_committed consumers and compaction stop before it"


class Problem(NamedTuple):
    """What is wrong with a cluster. `what` is a sentence without its end, `advice` whole ones."""

    what: str
    advice: str
    is_broken: bool
    """Whether something does not work now; else it may not survive the next failure."""
    partitions: tuple[PartitionState, ...] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """A cluster's state: healthy, degraded or broken, with what is wrong. The hanging transactions
    are None if the brokers do not say, and the groups that lose unread records if nobody asked.
    """

    state: str
    broken: list[str]
    degraded: list[str]
    brokers: int
    controller: int | None
    partitions: int
    hanging_transactions: list[HangingTransaction] | None
    losing_groups: list[str] | None = None


def health_of(client: Client, max_loss_in_ms: int | None = None) -> Health:
    """Of the cluster as it is now. With `max_loss_in_ms` it is broken where a group loses records
    that it has not read within this time.
    """
    cluster = cluster_state(client)
    found = judged(cluster, hanging_transactions(client), certificate_days_left(client, cluster))
    if max_loss_in_ms is None:
        return found
    losing, unknown = losses_told(client, max_loss_in_ms, int(time.time() * 1000))
    told = [sentence for its in losing.values() for sentence in its] + unknown
    state = "broken" if told else found.state
    return replace(found, state=state, broken=[*found.broken, *told], losing_groups=list(losing))


def losses_told(
    client: Client, within_ms: int, now_ms: int
) -> tuple[dict[str, list[str]], list[str]]:
    """By group, a sentence for each partition of which it loses unread records; and sentences for
    what could not be looked at: nobody is told that nothing is lost who does not know it. Raises
    ClientError.
    """
    found = losses_of_all(client, within_ms, now_ms)
    losing = {}
    for group, its in sorted(found.by_group.items()):
        told = [f"group {group}: {replace(each, removed=0)}" for each in its if each.records]
        if told:
            losing[group] = told
    return losing, found.unknown


def judged(
    cluster: ClusterState,
    hanging: list[HangingTransaction] | None,
    days_left: Mapping[int, int] | None = None,
) -> Health:
    """`hanging`: None if the brokers do not say. `days_left`: of the certificates, by broker."""
    found = list(problems(cluster, hanging, days_left))
    broken = [each.what for each in found if each.is_broken]
    degraded = [each.what for each in found if not each.is_broken]
    return Health(
        "broken" if broken else "degraded" if degraded else "healthy",
        broken,
        degraded,
        cluster.live_brokers,
        cluster.controller,
        cluster.partitions,
        hanging,
    )


def hanging_transactions(client: Client) -> list[HangingTransaction] | None:
    """As `ottla transaction hanging --json`; None if the brokers do not say: they are older than
    Apache Kafka 3.0, or none of them answers.
    """
    try:
        transactions = Transactions(client)
        before_ms = int(time.time() * 1000) - MAX_TIMEOUT_MS
        found, _ = find_hanging(transactions, transactions.partitions(), before_ms)
    except ClientError:
        return None
    return [hanging_transaction(each) for each in found]


def certificate_days_left(client: Client, cluster: ClusterState) -> dict[int, int]:
    """By broker, as far as it has a certificate, and this client has verified it."""
    found: dict[int, int] = {}
    for broker in cluster.brokers:
        if broker.host is None or broker.port is None:
            continue
        try:
            ends_s = client.certificate_ends_s(Address(broker.host, broker.port))
        except ClientError:
            continue
        if ends_s is not None:
            found[broker.id] = int((ends_s - time.time()) // DAY_S)
    return found


def problems(
    cluster: ClusterState,
    hanging: Sequence[HangingTransaction] | None,
    days_left: Mapping[int, int] | None = None,
    folders: Sequence[LogDir] = (),
) -> Iterator[Problem]:
    """What is wrong, the worst first. The arguments are those of `judged`, and log folders of
    which it is said what their disks lack.
    """
    yield from broken_parts(cluster)
    yield from offline_folders(folders)
    yield from degraded_parts(cluster, len(hanging or ()))
    yield from full_disks(folders)
    yield from expiring_certificates(days_left or {})


def offline_folders(folders: Sequence[LogDir]) -> Iterator[Problem]:
    """Log folders that a broker cannot use."""
    for each in folders:
        if each.error is not None:
            yield Problem(
                f"broker {each.broker} cannot use its log folder {each.path}: {each.error}",
                "Its replicas there are offline. Look at the disk and the broker's log; a broker "
                "takes a folder again when it starts.",
                True,
            )


def full_disks(folders: Sequence[LogDir]) -> Iterator[Problem]:
    """Disks with little space left."""
    for each in folders:
        if not each.total_bytes or each.usable_bytes is None:
            continue
        percent = 100 * each.usable_bytes // each.total_bytes
        if percent < LITTLE_PERCENT:
            yield Problem(
                f"the disk of {each.path} of broker {each.broker} has {percent} % left",
                "A full disk ends writing to all that lies on it. Let retention remove more, or "
                "move replicas to other brokers: ottla cluster drain.",
                False,
            )


def expiring_certificates(days_left: Mapping[int, int]) -> Iterator[Problem]:
    """Those that expire soon."""
    for broker, days in sorted(days_left.items()):
        if days < EXPIRES_SOON_DAYS:
            yield Problem(
                f"the certificate of broker {broker} expires in {plural(days, 'day')}",
                "Put a new certificate in the place of the old one before clients refuse it. "
                "Brokers of Ottla take it without a restart.",
                False,
            )


def broken_parts(cluster: ClusterState) -> Iterator[Problem]:
    """What does not work now."""
    if cluster.controller is None:
        yield Problem(
            "there is no controller",
            "Topics, settings and leaders cannot change now. Look at the brokers' logs, and at "
            "the ZooKeeper ensemble or the controllers.",
            True,
        )
    elif not cluster.controller_answers:
        yield Problem(
            f"the controller, broker {cluster.controller}, does not respond",
            "Look at its process, its log and the network to it. If the broker stays away, "
            "another one becomes the controller.",
            True,
        )
    if cluster.offline:
        yield Problem(
            f"{plural(len(cluster.offline), 'partition')} without a leader",
            "Nobody can write or read them. Start a broker that holds an in-sync replica; if all "
            "of these are lost, elect another replica and lose what it lacks: ottla cluster elect "
            "--unclean.",
            True,
            tuple(cluster.offline),
        )
    short = [each for each in cluster.under_min_isr if each.leader is not None]
    if short:
        yield Problem(
            f"{plural(len(short), 'partition')} under min.insync.replicas reject acks=all",
            "Start the brokers that are down, or wait until their replicas have caught up. A lower "
            "min.insync.replicas lets producers go on with fewer copies.",
            True,
            tuple(short),
        )


def degraded_parts(cluster: ClusterState, hanging: int) -> Iterator[Problem]:
    """What works, but may not survive the next failure."""
    for broker in cluster.brokers:
        if not broker.live:
            yield Problem(
                f"broker {broker.id} is down and holds {plural(broker.replicas, 'replica')}",
                "Start it again. If it does not come back, move its replicas to other brokers: "
                "ottla cluster drain.",
                False,
            )
    bad = {
        (each.topic, each.partition)
        for partitions in (cluster.offline, cluster.under_min_isr)
        for each in partitions
    }
    behind = [each for each in cluster.under_replicated if (each.topic, each.partition) not in bad]
    if behind:
        yield Problem(
            f"{plural(len(behind), 'partition')} with fewer replicas in sync than assigned",
            "They are well again once the followers have caught up. If that does not come, look "
            "at the followers' disks and network.",
            False,
            tuple(behind),
        )
    if hanging:
        yield Problem(
            HANGING.format(plural(hanging, "transaction")),
            "No coordinator will end them. To see and abort them: ottla transaction hanging, "
            "ottla transaction abort.",
            False,
        )
