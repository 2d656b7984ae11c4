"""Who may do what: users, ACLs, quotas. A part that the visitor may not see says what he lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from ottla.client.admin.acls import acls
from ottla.client.admin.quotas import quotas
from ottla.client.admin.users import users
from ottla.client.errors import ClientError, RefusedError, RetriableError
from ottla.client.permission_hint import permission_hint
from ottla.console.visit import Visit
from ottla.quotas.entity import Entity
from ottla.security.acl import Permission, word
from ottla.security.acl_words import kind_of

MAX_ROWS: Final = 1000
"""Of each part."""


class Part(NamedTuple):
    """A table; `why` it is not there. `more`: rows that are not shown."""

    title: str
    head: Sequence[str]
    rows: list[tuple[str, ...]]
    more: int
    why: str | None
    none: str


def security(visit: Visit) -> Response:
    """The page at `/security`; `q` is a part of what the rows have."""
    client, wanted = visit.client, visit.text("q").lower()

    def user_rows() -> list[tuple[str, ...]]:
        return [
            (each.name, ", ".join(login.mechanism for login in each.logins))
            for each in users(client)
        ]

    def acl_rows() -> list[tuple[str, ...]]:
        return sorted(
            (
                entry.principal,
                "deny" if entry.permission is Permission.DENY else "allow",
                word(entry.operation),
                kind_of(pattern.resource),
                f"{pattern.name}*" if pattern.type.name == "PREFIXED" else pattern.name,
                entry.host,
            )
            for pattern, entry in acls(client)
        )

    def quota_rows() -> list[tuple[str, ...]]:
        return [
            (names_of(each.entity), kind.value, f"{value:,.10g}")
            for each in quotas(client)
            for kind, value in each.values.items()
        ]

    return visit.page(
        "security.html",
        part=visit.text("q"),
        parts=[
            asked(visit, "Users", ("User", "Passwords for"), user_rows, wanted, "No users."),
            asked(
                visit, "ACLs",
                ("Principal", "", "Operation", "On", "Name", "From"), acl_rows, wanted, "No ACLs.",
            ),
            asked(
                visit, "Quotas", ("Of", "Quota", "A second"), quota_rows, wanted, "No quotas."
            ),
        ],
    )  # fmt: skip


def names_of(entity: Entity) -> str:
    """`user alice client-id <default>`."""
    return " ".join(f"{kind} {name or '<default>'}" for kind, name in entity.names().items())


def asked(
    visit: Visit,
    title: str,
    head: Sequence[str],
    ask: Callable[[], list[Any]],
    wanted: str,
    none: str,
) -> Part:
    """One part. Raises RetriableError: then the whole page has no answer."""
    try:
        rows = ask()
    except RetriableError:
        raise
    except ClientError as error:
        lacking = error.lacking if isinstance(error, RefusedError) else None
        hint = error.hint or permission_hint(visit.access.principal, lacking) or ""
        return Part(title, head, [], 0, f"{error.message} {hint}".strip(), none)
    found = [row for row in rows if any(wanted in cell.lower() for cell in row)]
    return Part(title, head, found[:MAX_ROWS], max(0, len(found) - MAX_ROWS), None, none)
