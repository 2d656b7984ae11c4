"""`ottla user delete`."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cli.command import command
from ottla.cli.confirmation import confirm
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed
from ottla.cli.options import AS_JSON, YES
from ottla.cli.rows import emit, row
from ottla.cli.screen import say
from ottla.cli.user.existing import existing_users
from ottla.cli.user.rows import mechanism_option, users_argument
from ottla.client.admin.users import delete_password


@row
class DeletedUser:
    """What a user no longer logs in with, and what is left."""

    user: str
    deleted: Sequence[str]
    left: Sequence[str]

    def show(self) -> None:
        if self.left:
            say(f"User {self.user} now logs in with {', '.join(self.left)} only.")
        else:
            say(f"Deleted user {self.user}.")


@command()
@users_argument()
@mechanism_option(help="Delete only the password for this mechanism. Repeatable.")
@YES
@AS_JSON
@cluster_options
def delete(
    cluster: Cluster, names: Sequence[str], mechanisms: Sequence[str], yes: bool, as_json: bool
) -> None:
    """Delete users. Asks first, unless --yes.

    A connection that is open stays open. ACLs that name the user stay: ottla acl delete USER.
    """
    found = existing_users(cluster.client, names)
    doomed: list[DeletedUser] = []
    for user in found:
        has = [login.mechanism for login in user.logins]
        gone = [each for each in has if not mechanisms or each in mechanisms]
        if not gone:
            raise Failed(
                f"user {user.name!r} has no password for {', '.join(mechanisms)}, "
                f"but for {', '.join(has)}."
            )
        doomed.append(DeletedUser(user.name, gone, [each for each in has if each not in gone]))
    shown = ", ".join(each.user for each in doomed)
    confirm(
        f"Delete {shown}?",
        yes=yes,
        what_else=f"To delete without confirmation: ottla user delete {' '.join(names)} --yes",
        refused="Nothing was deleted.",
    )
    for one in doomed:
        for mechanism in one.deleted:
            delete_password(cluster.client, one.user, mechanism)
    if as_json:
        emit(doomed, as_json=True)
        return
    for one in doomed:
        one.show()
