"""`ottla user add`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.cli.screen import line_of_input, say
from ottla.cli.user.rows import DEFAULT_MECHANISM, mechanism_option, shown, user_argument
from ottla.cli.value_types import WholeNumber
from ottla.client.admin.users import Login, User, set_password, users
from ottla.security.sasl.scram import MAX_ITERATIONS, MIN_ITERATIONS

MAX_PASSWORD_BYTES: Final = 10_000
PRINCIPAL: Final = "User:"


@command()
@user_argument(shell_complete=None)
@mechanism_option(
    default=[DEFAULT_MECHANISM],
    help="SCRAM-SHA-256 or SCRAM-SHA-512. Repeatable.",
)
@click.option(
    "--iterations",
    type=WholeNumber(MIN_ITERATIONS, MAX_ITERATIONS),
    default=MIN_ITERATIONS,
    help="How often the password is hashed: more makes guessing slower, and each login.",
)
@click.option(
    "--password-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file whose first line is the password. Default: ask for it.",
)
@click.option("--replace", is_flag=True, help="Give a user that exists another password.")
@AS_JSON
@cluster_options
def add(
    cluster: Cluster,
    user: str,
    mechanisms: Sequence[str],
    iterations: int,
    password_file: Path | None,
    replace: bool,
    as_json: bool,
) -> None:
    """Add a user that logs in with a password (SCRAM).

    The password is asked for, or read from the first line of --password-file or, without a
    terminal, of standard input; so it is neither in the shell's history nor in the list of
    processes. A user may do nothing before an ACL allows it: ottla acl add.
    """
    if not user:
        raise UsageFailed("a user must have a name.")
    if user.startswith(PRINCIPAL):
        raise UsageFailed(
            f"{user!r} is how an ACL names user {user.removeprefix(PRINCIPAL)!r}.",
            f"Give the name alone: ottla user add {user.removeprefix(PRINCIPAL) or 'NAME'}",
        )
    chosen = list(dict.fromkeys(mechanisms))
    (found,) = users(cluster.client, [user]) or [User(user, ())]
    has = [login.mechanism for login in found.logins if login.mechanism in chosen]
    if has and not replace:
        raise Failed(
            f"user {user!r} has a password for {' and '.join(has)} already.",
            "To give it another one, add --replace.",
        )
    password = given_password(user, password_file)
    for mechanism in chosen:
        set_password(cluster.client, user, mechanism, password, iterations)
    others = [login for login in found.logins if login.mechanism not in chosen]
    logins = sorted([*others, *(Login(each, iterations) for each in chosen)])
    if as_json:
        emit(shown(User(user, tuple(logins))), as_json=True)
        return
    say(f"{'Changed' if has else 'Added'} user {user}, with a password for {', '.join(chosen)}.")


def given_password(user: str, file: Path | None) -> str:
    """From the file, the terminal (twice) or standard input. Raises UsageFailed."""
    if file is not None:
        password = first_line(file)
    elif sys.stdin.isatty():
        from getpass import getpass

        password = getpass(f"Password of {user}: ")
        if getpass("The same again: ") != password:
            raise UsageFailed("these are two different passwords; nothing was changed.")
    else:
        password = line_of_input().rstrip("\r\n")
    if not password:
        raise UsageFailed(
            f"there is no password for user {user!r}.",
            f"For example: ottla user add {user} --password-file FILE",
        )
    return password


def first_line(file: Path) -> str:
    """Raises UsageFailed."""
    try:
        with file.open("rb") as opened:
            line = opened.readline(MAX_PASSWORD_BYTES + 1)
        if len(line) > MAX_PASSWORD_BYTES:
            raise UsageFailed(f"the first line of {file} is too long for a password.")
        return line.decode().rstrip("\r\n")
    except OSError as error:
        raise UsageFailed(f"cannot read {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageFailed(f"the first line of {file} is not text.") from None
