"""`ottla user list`."""

from __future__ import annotations

from typing import Final

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.cli.user.rows import shown
from ottla.client.admin.users import users

NO_USERS: Final = "No users with a password for SCRAM. Create one with: ottla user add NAME"


@command("list")
@AS_JSON
@cluster_options
def list_users(cluster: Cluster, as_json: bool) -> None:
    """List the users that log in with a password for SCRAM.

    Users of PLAIN are in the settings of the brokers, and no request lists them.
    """
    emit([shown(each) for each in users(cluster.client)], as_json=as_json, none=NO_USERS)
