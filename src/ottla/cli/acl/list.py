"""`ottla acl list`."""

from __future__ import annotations

import click

from ottla.cli.acl.options import NO_ACLS, complete_kind, words_are_usage
from ottla.cli.acl_rows import shown_acls
from ottla.cli.command import command
from ottla.cli.complete import complete_user
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.client.admin.acls import EVERY_ACL, acls
from ottla.security.acl_filter import ANY
from ottla.security.acl_words import CLUSTER, principal_of, resource_of


@command("list")
@click.option(
    "--principal",
    metavar="PRINCIPAL",
    shell_complete=complete_user,
    help="Only ACLs that name this user or principal.",
)
@click.option(
    "--kind",
    metavar="KIND",
    shell_complete=complete_kind,
    help="Only ACLs for this kind of resource, such as topic.",
)
@AS_JSON
@cluster_options
def list_acls(cluster: Cluster, principal: str | None, kind: str | None, as_json: bool) -> None:
    """List ACLs. For those that decide about one resource: ottla acl describe."""
    with words_are_usage("--kind topic"):
        wanted = EVERY_ACL._replace(
            principal=None if principal is None else principal_of(principal),
            resource=ANY
            if kind is None
            else resource_of(kind, None if kind == CLUSTER else "*")[0],
        )
    emit(shown_acls(acls(cluster.client, wanted)), as_json=as_json, none=NO_ACLS)
