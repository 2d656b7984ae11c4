"""`ottla acl describe`."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.acl.options import named_resource, resource_arguments
from ottla.cli.acl_rows import ShownAcl, shown_acls
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit, row, show_rows
from ottla.cli.screen import note
from ottla.client.admin.acls import acls_for
from ottla.client.admin.authorizer import authorizer_settings


@row
class DescribedResource:
    """The ACLs that decide about a resource. What the brokers do not show is None."""

    kind: str
    name: str
    acls: Sequence[ShownAcl]
    super_users: Sequence[str] | None
    allow_everyone_if_no_acl_found: bool | None

    def show(self) -> None:
        if self.acls:
            show_rows(self.acls)
        else:
            others = {
                True: "everybody may use it, by allow.everyone.if.no.acl.found",
                False: "only super users may use it",
                None: "the brokers do not show who may use it then",
            }
            note(f"No ACL names this resource: {others[self.allow_everyone_if_no_acl_found]}.")
        if self.super_users:
            note(f"Super users may do everything: {', '.join(self.super_users)}.")
        elif self.super_users is None:
            note("Super users may do everything; the brokers do not show who they are.")


@command()
@resource_arguments()
@AS_JSON
@cluster_options
def describe(cluster: Cluster, kind: str, name: str | None, as_json: bool) -> None:
    """Show all ACLs that decide about a resource: for its name, for prefixes, for every name."""
    resource, named = named_resource(kind, name)
    found = acls_for(cluster.client, resource, named)
    settings = authorizer_settings(cluster.client)
    emit(
        DescribedResource(
            kind,
            named,
            shown_acls(found),
            settings.super_users,
            settings.everyone_without_acls,
        ),
        as_json=as_json,
    )
