"""Who may do what: users, ACLs, quotas. A part that the visitor may not see says what he lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from starlette.responses import Response

from ottla.client.admin.acls import acls
from ottla.client.admin.quotas import quotas
from ottla.client.admin.users import users
from ottla.client.errors import ClientError, RefusedError, RetriableError
from ottla.client.permission_hint import permission_hint
from ottla.console.pages.security_changes import MECHANISMS, QUOTAS
from ottla.console.visit import Visit
from ottla.quotas.entity import Entity
from ottla.security.acl import Acl, PatternType, Permission, word
from ottla.security.acl_words import KINDS, kind_of, words_of

MAX_ROWS: Final = 1000
"""Of each part."""


class Row(NamedTuple):
    """`fields`: what the form that changes it has. `mechanisms`: of a user."""

    cells: tuple[str, ...]
    fields: dict[str, str]
    mechanisms: tuple[str, ...] = ()


class Part(NamedTuple):
    """A table; `why` it is not there. `more`: rows that are not shown. `removal`: where the form of
    a row goes.
    """

    title: str
    head: Sequence[str]
    removal: str
    rows: list[Row]
    more: int
    why: str | None
    none: str


USERS: Final = ("Users", ("User", "Passwords for"), "/security/users/delete", "No users.")
ACLS: Final = (
    "ACLs",
    ("Principal", "Effect", "Operation", "On", "Name", "From"),
    "/security/acls/delete",
    "No ACLs.",
)
QUOTA_PART: Final = ("Quotas", ("Of", "Quota", "A second"), "/security/quotas", "No quotas.")


def security(visit: Visit) -> Response:
    """The page at `/security`; `q` is a part of what the rows have."""
    client, wanted = visit.client, visit.text("q").lower()

    def user_rows() -> list[Row]:
        rows = []
        for each in users(client):
            mechanisms = tuple(login.mechanism for login in each.logins)
            cells = (each.name, ", ".join(mechanisms))
            rows.append(Row(cells, {"user": each.name}, mechanisms))
        return rows

    def acl_rows() -> list[Row]:
        return sorted(Row(acl_cells(each), {"acl": words_of(each)}) for each in acls(client))

    def quota_rows() -> list[Row]:
        return [
            Row(
                (names_of(each.entity), kind.value, f"{value:,.10g}"),
                {**entity_fields(each.entity), "quota": kind.value, "seen": f"{value:.10g}"},
            )
            for each in quotas(client)
            for kind, value in each.values.items()
        ]

    return visit.page(
        "security.html",
        part=visit.text("q"),
        mechanisms=MECHANISMS,
        kinds=[*KINDS],
        quotas=QUOTAS,
        parts=[
            asked(visit, *USERS, user_rows, wanted),
            asked(visit, *ACLS, acl_rows, wanted),
            asked(visit, *QUOTA_PART, quota_rows, wanted),
        ],
    )


def acl_cells(acl: Acl) -> tuple[str, ...]:
    pattern, entry = acl
    return (
        entry.principal,
        "deny" if entry.permission is Permission.DENY else "allow",
        word(entry.operation),
        kind_of(pattern.resource),
        f"{pattern.name}*" if pattern.type is PatternType.PREFIXED else pattern.name,
        entry.host,
    )


def entity_fields(entity: Entity) -> dict[str, str]:
    """As the form of a quota names it (`security_changes.named_entity`)."""
    if entity.ip is not None:
        return {"of": "ip", "name": entity.ip}
    if entity.user is None:
        return {"of": "client", "name": entity.client_id or ""}
    if entity.client_id is None:
        return {"of": "user", "name": entity.user}
    return {"of": "both", "name": entity.user, "client": entity.client_id}


def names_of(entity: Entity) -> str:
    """`user alice client-id <default>`."""
    return " ".join(f"{kind} {name or '<default>'}" for kind, name in entity.names().items())


def asked(
    visit: Visit,
    title: str,
    head: Sequence[str],
    removal: str,
    none: str,
    ask: Callable[[], list[Row]],
    wanted: str,
) -> Part:
    """One part. Raises RetriableError: then the whole page has no answer."""
    try:
        rows = ask()
    except RetriableError:
        raise
    except ClientError as error:
        lacking = error.lacking if isinstance(error, RefusedError) else None
        hint = error.hint or permission_hint(visit.access.principal, lacking) or ""
        return Part(title, head, removal, [], 0, f"{error.message} {hint}".strip(), none)
    found = [row for row in rows if any(wanted in cell.lower() for cell in row.cells)]
    return Part(title, head, removal, found[:MAX_ROWS], max(0, len(found) - MAX_ROWS), None, none)
