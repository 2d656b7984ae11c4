"""`ottla quota describe`."""

from __future__ import annotations

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import UsageFailed
from ottla.cli.options import AS_JSON
from ottla.cli.quota.entity import entity_options, named
from ottla.cli.quota.rows import value_text
from ottla.cli.rows import column, emit, row
from ottla.client.admin.quotas import quotas
from ottla.quotas.connections import address
from ottla.quotas.entity import DEFAULT, OF_CLIENTS, Entity, Kind
from ottla.quotas.limits import Limits

ANONYMOUS = "ANONYMOUS"


@row
class AppliedQuota:
    """A limit of a client, per second, and whose quota it is."""

    quota: str
    value: float = column(cell=lambda each: value_text(Kind(each.quota), each.value))
    of: str


@command()
@entity_options
@AS_JSON
@cluster_options
def describe(cluster: Cluster, entity: Entity, as_json: bool) -> None:
    """Show which quotas apply to a client, such as --user alice --client etl.

    Without --user, to a client that has not logged in (User:ANONYMOUS).
    """
    if DEFAULT in named(entity).names().values():
        raise UsageFailed(
            "describe says what applies to one client.", "For defaults: ottla quota list"
        )
    rows = _of_address(cluster, entity.ip) if entity.ip else _of_client(cluster, entity)
    emit(rows, as_json=as_json, none="No quota applies to it.")


def _of_client(cluster: Cluster, client: Entity) -> list[AppliedQuota]:
    limits = Limits()
    for quota in quotas(cluster.client):
        if quota.entity.ip is None:
            limits.set(quota.entity, quota.values)
    user, client_id = client.user or ANONYMOUS, client.client_id or ""
    found = [(kind, limits.deciding(kind, user, client_id)) for kind in OF_CLIENTS]
    return [
        AppliedQuota(kind.value, decided[1], str(decided[0]))
        for kind, decided in found
        if decided is not None
    ]


def _of_address(cluster: Cluster, ip: str) -> list[AppliedQuota]:
    try:
        wanted = address(ip)
    except ValueError:
        raise UsageFailed(f"{ip!r} is not an IP address.") from None
    by_ip = {each.entity.ip: each for each in quotas(cluster.client) if each.entity.ip is not None}
    found = by_ip.get(wanted, by_ip.get(DEFAULT))
    if found is None:
        return []
    return [
        AppliedQuota(kind.value, value, str(found.entity)) for kind, value in found.values.items()
    ]
