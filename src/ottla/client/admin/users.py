"""Users and their passwords for SCRAM: DescribeUserScramCredentials and AlterUserScramCredentials
(KIP-554).

The password itself does not leave this process: the brokers get it salted, and keep keys of it that
cannot be used to log in.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.client.admin.controller import code_of_each
from ottla.client.client import Client
from ottla.client.errors import Needs, RefusedError
from ottla.client.question import Question
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import Messages
from ottla.security.sasl.scram import SALT_BYTES, salted_password

DESCRIBE_USERS: Final = 50
ALTER_USERS: Final = 51
SINCE: Final = "2.7"
NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The mechanisms as numbered in the protocol."""
MECHANISMS: Final = {number: name for name, number in NUMBERS.items()}


class Login(NamedTuple):
    """A user has a password for this mechanism."""

    mechanism: str
    iterations: int


class User(NamedTuple):
    """A user with at least one password."""

    name: str
    logins: tuple[Login, ...]


def users(client: Client, names: Sequence[str] | None = None) -> list[User]:
    """These users, or all, by name; those that have no password are left out. Raises
    RefusedError.
    """

    def build(messages: Messages) -> Any:
        asked = None
        if names is not None:
            asked = tuple(messages.UserName(name=name) for name in dict.fromkeys(names))
        return messages.DescribeUserScramCredentialsRequest(users=asked)

    doing = "list the users"
    client.metadata([])  # a broker that cannot be reached is no reason to wait for a controller
    response = client.ask_controller(Question(DESCRIBE_USERS, 0, build, since=SINCE), doing)
    found: list[User] = []
    for each in response.results:
        if each.error_code is ErrorCode.resource_not_found:
            continue
        if each.error_code is not ErrorCode.none:
            raise RefusedError(
                f"describe user {each.user!r}",
                each.error_code,
                each.error_message,
                Needs("Describe"),
            )
        logins = [
            Login(MECHANISMS.get(int(info.mechanism), "unknown"), info.iterations)
            for info in each.credential_infos
        ]
        found.append(User(each.user, tuple(sorted(logins))))
    return sorted(found)


def set_password(client: Client, name: str, mechanism: str, password: str, iterations: int) -> None:
    """From now on the user logs in with this password for this mechanism. Raises RefusedError."""
    salt = secrets.token_bytes(SALT_BYTES)
    salted = salted_password(mechanism, password, salt, iterations)

    def build(messages: Messages) -> Any:
        change = messages.ScramCredentialUpsertion(
            name=name,
            mechanism=NUMBERS[mechanism],
            iterations=iterations,
            salt=salt,
            salted_password=salted,
        )
        return messages.AlterUserScramCredentialsRequest(deletions=(), upsertions=(change,))

    _alter(client, build, f"set the password of user {name!r}")


def delete_password(client: Client, name: str, mechanism: str) -> None:
    """The user no longer logs in with this mechanism. Raises RefusedError."""

    def build(messages: Messages) -> Any:
        change = messages.ScramCredentialDeletion(name=name, mechanism=NUMBERS[mechanism])
        return messages.AlterUserScramCredentialsRequest(deletions=(change,), upsertions=())

    _alter(client, build, f"delete user {name!r}")


def _alter(client: Client, build: Any, doing: str) -> None:
    question = Question(ALTER_USERS, 0, build, since=SINCE)
    response = client.ask_controller(question, doing, code_of_each("results"))
    if not response.results:
        # Ottla once refused so, and nothing else would say that nothing was done.
        code = ErrorCode.cluster_authorization_failed
        raise RefusedError(doing, code, "the response names no user", Needs("Alter"))
    for each in response.results:
        if each.error_code is not ErrorCode.none:
            raise RefusedError(doing, each.error_code, each.error_message, Needs("Alter"))
