"""What is shown of users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from ottla.cli.complete import complete_user
from ottla.cli.options import Parameter
from ottla.cli.rows import column, row
from ottla.client.admin.users import NUMBERS, User

DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"
USERS_HINT: Final = "To list all users: ottla user list"


@row
class ShownLogin:
    """A mechanism for which the user has a password."""

    mechanism: str
    iterations: int


@row
class ShownUser:
    """A user, with the mechanisms for which it has a password."""

    user: str
    logins: Sequence[ShownLogin] = column(
        "logs in with",
        lambda each: ", ".join(f"{one.mechanism} ({one.iterations})" for one in each.logins),
    )


def shown(user: User) -> ShownUser:
    return ShownUser(user.name, [ShownLogin(*login) for login in user.logins])


def user_argument(**more: Any) -> Parameter:
    """`user`: one name."""
    options = {"metavar": "USER", "help": "The user's name.", "shell_complete": complete_user}
    return click.argument("user", **{**options, **more})


def users_argument() -> Parameter:
    """`names`: one or more."""
    return click.argument(
        "names",
        metavar="USER...",
        nargs=-1,
        required=True,
        shell_complete=complete_user,
        help="Names of users.",
    )


def mechanism_option(**more: Any) -> Parameter:
    """`mechanisms`: one or more."""
    options = {
        "multiple": True,
        "metavar": "NAME",
        "type": click.Choice(list(NUMBERS), case_sensitive=False),
    }
    return click.option("--mechanism", "-m", "mechanisms", **{**options, **more})
