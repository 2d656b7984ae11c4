"""`ottla quota add`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import UsageFailed
from ottla.cli.name_values import pairs
from ottla.cli.options import AS_JSON
from ottla.cli.quota.entity import EXAMPLE, entity_options, named
from ottla.cli.quota.rows import kind_of, shown, value_of
from ottla.cli.rows import emit
from ottla.client.admin.quotas import ClientQuota, alter_quotas
from ottla.quotas.entity import Entity


@command()
@click.argument(
    "words",
    metavar="QUOTA=VALUE...",
    nargs=-1,
    required=True,
    help="producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate; "
    "of addresses connection_creation_rate. All are per second.",
)
@entity_options
@AS_JSON
@cluster_options
def add(cluster: Cluster, entity: Entity, words: Sequence[str], as_json: bool) -> None:
    """Add or change quotas, such as --user alice producer_byte_rate=10MB.

    Of a user, a client id, or a client id of a user. The most specific one applies to a client.
    """
    named(entity)
    values = {}
    for key, text in pairs("QUOTA", words).items():
        kind = kind_of(key, entity)
        values[kind] = value_of(kind, text)
    if not values:
        raise UsageFailed("no quota is given.", EXAMPLE)
    alter_quotas(cluster.client, entity, values)
    emit(shown(ClientQuota(entity, values)), as_json=as_json)
