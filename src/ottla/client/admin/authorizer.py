"""What decides about a request, as far as the brokers tell: their settings and the ACLs.

A broker decides by its own settings; those of one broker stand for all.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.client.admin.acls import acls_for
from ottla.client.admin.configs import settings_of
from ottla.client.client import Client
from ottla.client.errors import RefusedError
from ottla.protocol.errors import ErrorCode
from ottla.security.acl import ANY_HOST, Acl, Entry, Pattern
from ottla.security.authorizer import Asked, Authorizer, Rule
from ottla.security.principal import Principal, parse_principal

CLASS_NAME: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
EVERYONE: Final = "allow.everyone.if.no.acl.found"


class AuthorizerSettings(NamedTuple):
    """None where the brokers do not say."""

    is_on: bool | None = None
    super_users: tuple[str, ...] | None = None
    everyone_without_acls: bool | None = None


class Judgement(NamedTuple):
    """Whether a principal may, and what decides: an ACL, a rule, or a sentence. `allowed` is None
    if that depends on settings that the brokers do not show.
    """

    allowed: bool | None
    because: Acl | str
    elsewhere: tuple[Acl, ...] = ()
    """ACLs for certain hosts, of which the question named none, that might decide otherwise."""


NO_AUTHORIZER: Final = "the brokers have no authorizer: everybody may do everything"


def authorizer_settings(client: Client) -> AuthorizerSettings:
    """Of one of the brokers. What may not be read is None."""
    broker = min(client.metadata([]).brokers, default=None)
    if broker is None:
        return AuthorizerSettings()
    try:
        found = {
            each.name: each for each in settings_of(client, "broker", [str(broker)])[str(broker)]
        }
    except RefusedError:
        return AuthorizerSettings()
    if CLASS_NAME not in found:
        return AuthorizerSettings()

    def text(name: str) -> str | None:
        # Apache Kafka lists what was given only, and hides what belongs to a plugin.
        return found[name].value if name in found else ""

    users, everyone = text(SUPER_USERS), text(EVERYONE)
    return AuthorizerSettings(
        bool(found[CLASS_NAME].value),
        None if users is None else tuple(each.strip() for each in users.split(";") if each.strip()),
        None if everyone is None else everyone.lower() == "true",
    )


def judge(client: Client, asked: Asked) -> Judgement:
    """What the brokers would decide. The host may be ANY_HOST: then ACLs for certain hosts do not
    count. Raises RefusedError if the ACLs may not be read.
    """
    settings = authorizer_settings(client)
    if settings.is_on is False:
        return Judgement(True, NO_AUTHORIZER)
    try:
        found = acls_for(client, asked.resource, asked.name)
    except RefusedError as error:
        if error.code is ErrorCode.security_disabled:
            return Judgement(True, NO_AUTHORIZER)
        raise
    return judged(asked, found, settings)


def judged(asked: Asked, acls: list[Acl], settings: AuthorizerSettings) -> Judgement:
    """By these ACLs of the resource."""
    authorizer = Authorizer(
        _principals(settings.super_users or ()),
        everyone_without_acls=settings.everyone_without_acls or False,
    )
    entries: dict[Pattern, list[Entry]] = {}
    for acl in acls:
        entries.setdefault(acl.pattern, []).append(acl.entry)
    for pattern, some in entries.items():
        authorizer.set_entries(pattern, some)
    decision = authorizer.decide(asked)
    elsewhere: tuple[Acl, ...] = ()
    if asked.host == ANY_HOST and decision.because is not Rule.SUPER_USER:
        elsewhere = tuple(_of_certain_hosts(asked, acls))
    because = decision.because
    allowed: bool | None = decision.allowed
    if isinstance(because, Acl):
        text: Acl | str = because
    else:
        text = because.value
        if because is Rule.NO_ACL_ALLOWS and settings.everyone_without_acls is None:
            allowed, text = None, f"{text}, and the brokers do not show {EVERYONE}"
    if allowed is False and settings.super_users is None:
        # Whatever an ACL says: a super user may.
        allowed = None
    return Judgement(allowed, text, elsewhere)


def _of_certain_hosts(asked: Asked, acls: list[Acl]) -> list[Acl]:
    return [
        acl
        for acl in acls
        if acl.entry.host != ANY_HOST
        and acl.entry.principal in (asked.principal, "User:*")
        and acl.entry.covers(asked.operation)
    ]


def _principals(texts: tuple[str, ...]) -> list[Principal]:
    return [parse_principal(each) for each in texts if ":" in each]
