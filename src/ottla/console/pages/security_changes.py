"""Adding and removing users, ACLs and quotas. What somebody else has changed since the page was
loaded is not overwritten: each form has what its page has shown.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from ottla.client.admin.acls import acls, create_acls, delete_acls, filter_of
from ottla.client.admin.quotas import alter_quotas, quotas
from ottla.client.admin.users import delete_password, set_password, users
from ottla.console.errors import BadFormError, ConflictError
from ottla.console.visit import Visit
from ottla.quotas.entity import DEFAULT, OF_CLIENTS, Entity, Kind
from ottla.security.acl import Acl
from ottla.security.acl_words import AclWordsError, acls_of, parse_acls, words_of
from ottla.security.principal import USER
from ottla.security.sasl.scram import MIN_ITERATIONS
from ottla.wording.plural import plural

PAGE: Final = "/security"
MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
QUOTAS: Final = (*OF_CLIENTS, Kind.CONNECTION)
CHANGED: Final = "Nothing was changed. Load the page again."


def add_user(visit: Visit) -> Response:
    """A user with a password (SCRAM), or another password for one that exists."""
    name, mechanism = visit.form.get("user", ""), chosen_mechanism(visit)
    password = visit.form.get("password", "")
    if not name or name.startswith(f"{USER}:"):
        raise BadFormError(
            "the user needs a name, without a type.", f"alice, and not {USER}:alice."
        )
    if not password:
        raise BadFormError("the user needs a password.")
    if password != visit.form.get("again", ""):
        raise BadFormError("these are two different passwords.", "Nothing was changed.")
    has = logins_of(visit, name)
    if mechanism in has and not visit.text("replace"):
        raise ConflictError(
            f"user {name!r} has a password for {mechanism} already.",
            "Nothing was changed. To give it another one, tick the box.",
        )
    set_password(visit.client, name, mechanism, password, MIN_ITERATIONS)
    said = "has another password now" if mechanism in has else "can log in"
    return visit.go(PAGE, f"User {name} {said} ({mechanism}).")


def delete_user(visit: Visit) -> Response:
    """The password of a user for one mechanism."""
    name, mechanism = visit.form.get("user", ""), chosen_mechanism(visit)
    if mechanism not in logins_of(visit, name):
        raise ConflictError(f"user {name!r} has no password for {mechanism} by now.", CHANGED)
    delete_password(visit.client, name, mechanism)
    return visit.go(PAGE, f"User {name} no longer logs in with {mechanism}.")


def chosen_mechanism(visit: Visit) -> str:
    """Raises BadFormError."""
    mechanism = visit.text("mechanism")
    if mechanism not in MECHANISMS:
        raise BadFormError(f"mechanism must be one of {', '.join(MECHANISMS)}.")
    return mechanism


def logins_of(visit: Visit, name: str) -> list[str]:
    """The mechanisms for which the user has a password."""
    return [login.mechanism for each in users(visit.client, [name]) for login in each.logins]


def add_acl(visit: Visit) -> Response:
    """ACLs for a principal, one for each operation."""
    try:
        wanted = acls_of(
            visit.text("principal"),
            visit.text("operations"),
            visit.text("kind"),
            visit.form.get("name") or None,
            deny=visit.text("permission") == "deny",
            prefixed=bool(visit.text("prefixed")),
            hosts=[visit.text("host")] if visit.text("host") else [],
        )
    except AclWordsError as error:
        raise BadFormError(str(error), "Nothing was changed.") from None
    known = set(acls(visit.client))
    new = [each for each in wanted if each not in known]
    if not new:
        return visit.go(PAGE, "There was nothing to add: these ACLs exist.")
    create_acls(visit.client, new)
    return visit.go(PAGE, f"Added {plural(len(new), 'ACL')}: {'; '.join(map(words_of, new))}.")


def delete_acl(visit: Visit) -> Response:
    """The one ACL that the form names."""
    doomed = named_acl(visit.form.get("acl", ""))
    if doomed not in acls(visit.client, filter_of(doomed)):
        raise ConflictError(f"the ACL {words_of(doomed)} is not there any more.", CHANGED)
    delete_acls(visit.client, [doomed])
    return visit.go(PAGE, f"Deleted the ACL {words_of(doomed)}.")


def named_acl(text: str) -> Acl:
    """Raises BadFormError."""
    try:
        found = parse_acls(text)
    except AclWordsError as error:
        raise BadFormError(str(error)) from None
    if len(found) != 1:
        raise BadFormError(f"{text!r} is not one ACL.")
    return found[0]


def set_quota(visit: Visit) -> Response:
    """Sets, changes or (without a value) removes one quota. `seen` is what the page has shown."""
    entity, kind = named_entity(visit), chosen_quota(visit)
    text = visit.text("value")
    value = read_number(kind, text) if text else None
    present = next(
        (each.values.get(kind) for each in quotas(visit.client) if each.entity == entity), None
    )
    seen = visit.text("seen")
    if present != (read_number(kind, seen) if seen else None):
        now = "is not set" if present is None else f"is {present:.10g}"
        raise ConflictError(
            f"{kind.value} of {entity} {now} by now: somebody has changed it since this page was "
            "loaded.",
            CHANGED,
        )
    if value is None and present is None:
        raise BadFormError(f"{kind.value} needs a value.")
    alter_quotas(visit.client, entity, {kind: value})
    now = "is removed" if value is None else f"is {value:.10g} a second now"
    return visit.go(PAGE, f"{kind.value} of {entity} {now}.")


def named_entity(visit: Visit) -> Entity:
    """`of` is user, client, user-and-client or ip, with the names; an empty name is the default of
    all that have none of their own. Raises BadFormError.
    """
    of, name = visit.text("of"), visit.form.get("name", "")
    client = visit.form.get("client", "")
    found = {
        "user": Entity(user=name or DEFAULT),
        "client": Entity(client_id=name or DEFAULT),
        "both": Entity(user=name or DEFAULT, client_id=client or DEFAULT),
        "ip": Entity(ip=name or DEFAULT),
    }.get(of)
    if found is None:
        raise BadFormError("say whom the quota is for: a user, a client id, both, or an address.")
    return found


def chosen_quota(visit: Visit) -> Kind:
    """Raises BadFormError."""
    word, of_address = visit.text("quota"), visit.text("of") == "ip"
    for kind in QUOTAS:
        if kind.value == word and (kind is Kind.CONNECTION) == of_address:
            return kind
    known = (Kind.CONNECTION,) if of_address else OF_CLIENTS
    raise BadFormError(
        f"{word!r} is no quota of {'an address' if of_address else 'users and client ids'}.",
        f"There are {', '.join(kind.value for kind in known)}.",
    )


def read_number(kind: Kind, text: str) -> float:
    """Raises BadFormError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise BadFormError(f"{kind.value} must be a number above 0, not {text!r}.")
    return value
