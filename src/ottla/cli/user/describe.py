"""`ottla user describe`."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.acl_rows import ShownAcl, shown_acls
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit, row, show_rows
from ottla.cli.screen import note, say_styled
from ottla.cli.user.existing import existing_users
from ottla.cli.user.rows import ShownLogin, shown, users_argument
from ottla.client.admin.acls import acls_of_principal
from ottla.client.client import Client
from ottla.client.errors import RefusedError
from ottla.security.acl import Acl


@row
class DescribedUser:
    """How a user logs in, and the ACLs that name it: None if the brokers do not say."""

    user: str
    logins: Sequence[ShownLogin]
    acls: Sequence[ShownAcl] | None

    def show(self) -> None:
        say_styled(self.user, "bold")
        show_rows(self.logins)
        if self.acls:
            show_rows(self.acls)
        elif self.acls is not None:
            note(f"No ACL names User:{self.user}. Add one with: ottla acl add {self.user} ...")


@command()
@users_argument()
@AS_JSON
@cluster_options
def describe(cluster: Cluster, names: Sequence[str], as_json: bool) -> None:
    """Show how users log in, and the ACLs that name them."""
    found = existing_users(cluster.client, names)
    rows = [
        DescribedUser(each.name, shown(each).logins, acls(cluster.client, each.name))
        for each in found
    ]
    emit(rows, as_json=as_json)


def acls(client: Client, user: str) -> list[ShownAcl] | None:
    """None without an authorizer, or without the permission to read ACLs."""
    try:
        found: list[Acl] = acls_of_principal(client, f"User:{user}")
    except RefusedError:
        return None
    return shown_acls(found)
