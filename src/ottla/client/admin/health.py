"""Whether a cluster works: the controller, brokers that hold replicas, every partition, and hanging
transactions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ottla.client.addresses import Address
from ottla.client.admin.cluster import ClusterState, cluster_state
from ottla.client.admin.hanging_transactions import (
    HangingTransaction,
    find_hanging,
    hanging_transaction,
)
from ottla.client.admin.transactions import Transactions
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.wording.plural import plural

MAX_TIMEOUT_MS: Final = 15 * 60_000
"""transaction.max.timeout.ms by default: a transaction with a later write may just be long."""
DAY_S: Final = 24 * 3600
EXPIRES_SOON_DAYS: Final = 30
HANGING: Final = "{} hanging: read_committed consumers and compaction stop before it"


@dataclass(frozen=True, slots=True)
class Health:
    """A cluster's state: healthy, degraded or broken, with what is wrong. The hanging transactions
    are None if the brokers do not say.
    """

    state: str
    broken: list[str]
    degraded: list[str]
    brokers: int
    controller: int | None
    partitions: int
    hanging_transactions: list[HangingTransaction] | None


def health_of(client: Client) -> Health:
    """Of the cluster as it is now."""
    cluster = cluster_state(client)
    return judged(cluster, hanging_transactions(client), certificate_days_left(client, cluster))


def judged(
    cluster: ClusterState,
    hanging: list[HangingTransaction] | None,
    days_left: Mapping[int, int] | None = None,
) -> Health:
    """`hanging`: None if the brokers do not say. `days_left`: of the certificates, by broker."""
    broken = list(broken_parts(cluster))
    degraded = list(degraded_parts(cluster, len(hanging or ())))
    degraded += expiring_certificates(days_left or {})
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


def expiring_certificates(days_left: Mapping[int, int]) -> Iterator[str]:
    """Those that expire soon."""
    for broker, days in sorted(days_left.items()):
        if days < EXPIRES_SOON_DAYS:
            yield f"the certificate of broker {broker} expires in {plural(days, 'day')}"


def broken_parts(cluster: ClusterState) -> Iterator[str]:
    """What does not work now."""
    if cluster.controller is None:
        yield "there is no controller"
    elif not cluster.controller_answers:
        yield f"the controller, broker {cluster.controller}, does not respond"
    if cluster.offline:
        yield f"{plural(len(cluster.offline), 'partition')} without a leader"
    short = [each for each in cluster.under_min_isr if each.leader is not None]
    if short:
        yield f"{plural(len(short), 'partition')} under min.insync.replicas reject acks=all"


def degraded_parts(cluster: ClusterState, hanging: int) -> Iterator[str]:
    """What works, but may not survive the next failure."""
    for broker in cluster.brokers:
        if not broker.live:
            yield f"broker {broker.id} is down and holds {plural(broker.replicas, 'replica')}"
    bad = {
        (each.topic, each.partition)
        for partitions in (cluster.offline, cluster.under_min_isr)
        for each in partitions
    }
    behind = [each for each in cluster.under_replicated if (each.topic, each.partition) not in bad]
    if behind:
        yield f"{plural(len(behind), 'partition')} with fewer replicas in sync than assigned"
    if hanging:
        yield HANGING.format(plural(hanging, "transaction"))
