"""`ottla quota describe`."""

from __future__ import annotations

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import UsageFailed
from ottla.cli.options import AS_JSON
from ottla.cli.quota.entity import entity_options, named
from ottla.cli.quota.rows import value_text
from ottla.cli.rows import column, emit, row
from ottla.client.admin.quotas import applied_to_address, applied_to_client
from ottla.quotas.connections import address
from ottla.quotas.entity import DEFAULT, Entity, Kind

ANONYMOUS = "ANONYMOUS"


@row
class ShownQuota:
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
    found = (
        applied_to_address(cluster.client, checked_address(entity.ip))
        if entity.ip
        else applied_to_client(cluster.client, entity.user or ANONYMOUS, entity.client_id or "")
    )
    rows = [ShownQuota(each.kind.value, each.value, str(each.of)) for each in found]
    emit(rows, as_json=as_json, none="No quota applies to it.")


def checked_address(ip: str) -> str:
    """As quotas name it. Raises UsageFailed."""
    try:
        return address(ip)
    except ValueError:
        raise UsageFailed(f"{ip!r} is not an IP address.") from None
