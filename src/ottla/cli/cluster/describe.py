"""`ottla cluster describe`."""

from __future__ import annotations

from ottla.cli.cluster.description import description_of
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit


@command()
@AS_JSON
@cluster_options
def describe(cluster: Cluster, as_json: bool) -> None:
    """Show brokers, the controller, and partitions that are offline or under-replicated."""
    emit(description_of(cluster.connection), as_json=as_json)
