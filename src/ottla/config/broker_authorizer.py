"""Settings of the authorizer (KIP-11)."""

from __future__ import annotations

from typing import Final

from ottla.config.error import invalid_value
from ottla.config.setting import Settings, boolean, string
from ottla.config.validator import Validator
from ottla.config.value import Value
from ottla.security.principal import Principal, parse_principal

AUTHORIZERS: Final = (
    "kafka.security.authorizer.AclAuthorizer",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
)
"""Kafka's two. Here they are the same."""


def super_users(text: str) -> tuple[Principal, ...]:
    """The principals of `super.users`, separated by semicolons: a certificate's name has commas.
    Raises ValueError.
    """
    return tuple(parse_principal(each.strip()) for each in text.split(";") if each.strip())


def _of_kafka() -> Validator:
    def check(name: str, value: Value) -> None:
        if value and value not in AUTHORIZERS:
            reason = f"Only Kafka's own authorizers are supported: {' or '.join(AUTHORIZERS)}"
            raise invalid_value(name, value, reason)

    return Validator(f"empty, {', '.join(AUTHORIZERS)}", check)


def _principals() -> Validator:
    def check(name: str, value: Value) -> None:
        assert isinstance(value, str)
        try:
            super_users(value)
        except ValueError as error:
            reason = f"{error}; several are separated by semicolons"
            raise invalid_value(name, value, reason) from None

    return Validator("Type:name;Type:name;...", check)


class AuthorizerSettings(Settings):
    """Who may do what."""

    authorizer_class_name = string(
        "authorizer.class.name",
        "",
        "The authorizer: ACLs decide what a client may do. Both names of Kafka mean the same. "
        "Empty: every client may do everything.",
        _of_kafka(),
    )
    super_users = string(
        "super.users",
        "",
        "Principals that may do everything, as User:name, separated by semicolons.",
        _principals(),
    )
    allow_everyone_if_no_acl_found = boolean(
        "allow.everyone.if.no.acl.found",
        False,
        "Whether every client may use a resource that no ACL names.",
    )
