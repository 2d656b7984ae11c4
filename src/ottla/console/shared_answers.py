"""What several pages ask the cluster for: asked once for all that are open, and kept for a moment.

What a visitor changes is asked again at once (`Access.forget`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.client.addresses import Address
from ottla.client.admin.cluster import ClusterState, cluster_state, min_in_sync
from ottla.client.admin.groups import ListedGroup, listed_groups
from ottla.client.admin.lags import Lags, lags
from ottla.client.admin.last_elections import Elections, last_elections
from ottla.client.errors import ClientError, RefusedError
from ottla.client.metadata import Metadata
from ottla.console.visit import Visit
from ottla.protocol.errors import ErrorCode

FRESH_S: Final = 4.0
"""Shorter than the five seconds after which a page asks again, so that it has something newer; long
enough for two pages to get the same answer.
"""
SETTINGS_FRESH_S: Final = 30.0
"""To read a setting of each topic takes longer than all else, and hardly ever has it changed."""
ASKED_AGAIN_S: Final = 60.0
"""What the brokers did not know."""
NOT_WHOLE: Final = "Some groups or ends could not be read: lags may be higher."


def shared_metadata(visit: Visit) -> Metadata:
    """Of all topics."""
    return visit.access.kept("metadata", FRESH_S, visit.client.metadata)


def shared_cluster(visit: Visit) -> ClusterState:
    """Brokers, the controller, and each partition with a problem."""

    def ask() -> ClusterState:
        try:
            return _cluster(visit, shared_metadata(visit))
        except RefusedError as error:
            if error.code is not ErrorCode.unknown_topic_or_partition:
                raise
            # A topic was deleted while the metadata were kept.
            return _cluster(visit, visit.client.metadata())

    return visit.access.kept("cluster", FRESH_S, ask)


def _cluster(visit: Visit, metadata: Metadata) -> ClusterState:
    return cluster_state(visit.client, metadata, least_in_sync(visit, metadata.topics))


def shared_elections(visit: Visit, cluster: ClusterState) -> Elections | RefusedError | None:
    """The last ones, as the controller has seen them, or why the visitor must not see them; None
    where nobody says.
    """
    lead = next((each for each in cluster.brokers if each.id == cluster.controller), None)
    if lead is None or lead.host is None or lead.port is None:
        return None
    address = Address(lead.host, lead.port)

    def ask() -> Elections | RefusedError | None:
        try:
            return last_elections(visit.client, address)
        except RefusedError as error:
            return error
        except ClientError:
            return None

    # Other brokers than Ottla's close the connection, and write an error into their logs.
    if not visit.access.kept("lists elections", ASKED_AGAIN_S, lambda: ask() is not None):
        return None
    return visit.access.kept("elections", FRESH_S, ask)


def least_in_sync(visit: Visit, topics: Iterable[str]) -> dict[str, int]:
    """`min.insync.replicas` by topic. Only topics that are new are asked about every time."""
    client, names = visit.client, sorted(topics)
    known = visit.access.kept("in sync", SETTINGS_FRESH_S, lambda: min_in_sync(client, names))
    new = [name for name in names if name not in known]
    return {**known, **min_in_sync(client, new)} if new else known


def shared_groups(visit: Visit) -> list[ListedGroup]:
    """All groups, by name."""
    return visit.access.kept("groups", FRESH_S, lambda: listed_groups(visit.client))


def shared_lags(visit: Visit) -> Lags:
    """Of all groups."""
    return visit.access.kept("lags", FRESH_S, lambda: lags(visit.client))


def known_lags(visit: Visit) -> tuple[Lags, str | None]:
    """The same, and why they are not whole; none if nobody says them."""
    try:
        found = shared_lags(visit)
    except ClientError as error:
        return Lags([], False), error.message
    return found, None if found.is_whole else NOT_WHOLE
