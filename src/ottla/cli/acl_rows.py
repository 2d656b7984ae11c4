"""ACLs as rows, for the commands that show them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ottla.cli.rows import column, row
from ottla.protocol.access import Resource
from ottla.security.acl import Acl, PatternType, Permission, word
from ottla.security.acl_words import kind_of

WORDS: Final = {Permission.ALLOW: "allow", Permission.DENY: "deny"}


@row
class ShownAcl:
    """`name` of a prefixed ACL is the beginning of the names."""

    principal: str
    permission: str = column("")
    operation: str
    kind: str = column("on")
    name: str = column(cell=lambda each: each.shown_name)
    pattern: str = column(
        cell=lambda each: "prefixed" if each.pattern == "prefixed" else "", is_optional=True
    )
    host: str = column(
        "from", cell=lambda each: "" if each.host == "*" else each.host, is_optional=True
    )

    @property
    def shown_name(self) -> str:
        return "" if self.kind == kind_of(Resource.CLUSTER) else self.name


def shown_acl(acl: Acl) -> ShownAcl:
    pattern, entry = acl
    return ShownAcl(
        entry.principal,
        WORDS[entry.permission],
        word(entry.operation),
        kind_of(pattern.resource),
        pattern.name,
        "prefixed" if pattern.type is PatternType.PREFIXED else "literal",
        entry.host,
    )


def shown_acls(acls: Iterable[Acl]) -> list[ShownAcl]:
    """Those of a principal together."""
    return sorted(map(shown_acl, acls), key=lambda each: (each.principal, each.kind, each.name))
