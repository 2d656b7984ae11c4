"""`ottla quota list`."""

from __future__ import annotations

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON
from ottla.cli.quota.entity import entity_options
from ottla.cli.quota.rows import NO_QUOTAS, shown
from ottla.cli.rows import emit
from ottla.client.admin.quotas import quotas
from ottla.quotas.entity import Entity


@command("list")
@entity_options
@AS_JSON
@cluster_options
def list_quotas(cluster: Cluster, entity: Entity, as_json: bool) -> None:
    """List quotas, all or those that name a user, client id or address."""
    wanted = entity.names().items()
    rows = [
        each
        for quota in quotas(cluster.client)
        if wanted <= quota.entity.names().items()
        for each in shown(quota)
    ]
    emit(rows, as_json=as_json, none=NO_QUOTAS)
