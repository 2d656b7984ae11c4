"""`ottla quota delete`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.deletion import delete_shown
from ottla.cli.failures import Failed
from ottla.cli.options import AS_JSON, YES
from ottla.cli.quota.entity import entity_options, named
from ottla.cli.quota.rows import kind_of, shown
from ottla.client.admin.quotas import ClientQuota, alter_quotas, quotas
from ottla.quotas.entity import Entity


@command()
@click.argument(
    "words", metavar="[QUOTA...]", nargs=-1, help="Such as producer_byte_rate. Default: all."
)
@entity_options
@YES
@AS_JSON
@cluster_options
def delete(
    cluster: Cluster, entity: Entity, words: Sequence[str], yes: bool, as_json: bool
) -> None:
    """Delete quotas of exactly this user, client id or address. Asks first, unless --yes."""
    named(entity)
    kinds = [kind_of(word, entity) for word in words]
    present = next((each.values for each in quotas(cluster.client) if each.entity == entity), {})
    missing = [kind for kind in kinds if kind not in present]
    if missing or not present:
        what = missing[0].value if missing else "quota"
        raise Failed(f"{entity} has no {what}.", "To list all: ottla quota list")
    doomed = {kind: value for kind, value in present.items() if not kinds or kind in kinds}
    delete_shown(
        shown(ClientQuota(entity, doomed)),
        "quota",
        lambda: alter_quotas(cluster.client, entity, dict.fromkeys(doomed)),
        yes=yes,
        as_json=as_json,
    )
