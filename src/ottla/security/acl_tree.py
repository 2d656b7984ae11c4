"""ACLs in the coordination tree, in the format of Kafka's AclAuthorizer (ZkData, AclEntry): pure.

    /kafka-acl/Topic/orders                      {"version":1,"acls":[{"principal":"User:alice",
                                                  "permissionType":"Allow","operation":"Read",
                                                  "host":"*"}]}
    /kafka-acl-extended/prefixed/Topic/or        the same, for all names that begin with "or"
    /kafka-acl-changes/acl_changes_0000000007    TOPIC:orders: that node has changed
    /kafka-acl-extended-changes/acl_changes_…    {"version":1,"resourceType":"TOPIC","name":"or",
                                                  "patternType":"PREFIXED"}

Who changes a node writes it if it has the version that was read, so no change is lost, and then
makes a node of changes, which every broker watches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ottla.protocol.access import Operation, Resource
from ottla.security.acl import Entry, Pattern, PatternType, Permission, code_of, word

LITERAL: Final = "/kafka-acl"
EXTENDED: Final = "/kafka-acl-extended"
PREFIXED: Final = "/kafka-acl-extended/prefixed"
ROOTS: Final = {PatternType.LITERAL: LITERAL, PatternType.PREFIXED: PREFIXED}
CHANGES: Final = {
    PatternType.LITERAL: "/kafka-acl-changes",
    PatternType.PREFIXED: "/kafka-acl-extended-changes",
}
CHANGE: Final = "acl_changes_"
LASTING_NODES: Final = (
    LITERAL,
    EXTENDED,
    PREFIXED,
    *CHANGES.values(),
    *(f"{root}/{word(resource)}" for root in ROOTS.values() for resource in Resource),
)
"""Parents before children."""


class AclNodeError(ValueError):
    """A node's content is not in the format of this module; the message says what is wrong."""


def path_of(pattern: Pattern) -> str:
    """The node with a pattern's entries. A name with a slash has none."""
    assert "/" not in pattern.name
    return f"{ROOTS[pattern.type]}/{word(pattern.resource)}/{pattern.name}"


def pattern_at(path: str) -> Pattern | None:
    """The inverse of `path_of`; None for a node of another depth."""
    for kind, root in ROOTS.items():
        rest = path.removeprefix(f"{root}/")
        resource, slash, name = rest.partition("/")
        if rest != path and slash and name and "/" not in name:
            try:
                return Pattern(code_of(Resource, resource), name, kind)
            except ValueError:
                return None
    return None


def write_entries(entries: Iterable[Entry]) -> bytes:
    """Content of a pattern's node."""
    acls = [
        {
            "principal": entry.principal,
            "permissionType": word(entry.permission),
            "operation": word(entry.operation),
            "host": entry.host,
        }
        for entry in entries
    ]
    return _text({"version": 1, "acls": acls})


def read_entries(data: bytes) -> list[Entry]:
    """The inverse of `write_entries`. Raises AclNodeError."""
    if not data:
        return []
    try:
        content = json.loads(data)
        if content["version"] != 1:
            raise AclNodeError(f"version {content['version']!r}; expected 1")
        return [
            Entry(
                str(acl["principal"]),
                str(acl["host"]),
                code_of(Operation, acl["operation"]),
                code_of(Permission, acl["permissionType"]),
            )
            for acl in content["acls"]
        ]
    except AclNodeError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise AclNodeError(f"no list of ACLs: {error!r}") from None


def write_change(pattern: Pattern) -> bytes:
    """Content of a node of changes."""
    if pattern.type is PatternType.LITERAL:
        return f"{pattern.resource.name}:{pattern.name}".encode()
    return _text(
        {
            "version": 1,
            "resourceType": pattern.resource.name,
            "name": pattern.name,
            "patternType": pattern.type.name,
        }
    )


def read_change(kind: PatternType, data: bytes) -> Pattern:
    """The inverse of `write_change`. Raises AclNodeError."""
    try:
        if kind is PatternType.LITERAL:
            resource, _, name = data.decode().partition(":")
        else:
            content = json.loads(data)
            resource, name = content["resourceType"], str(content["name"])
        return Pattern(code_of(Resource, resource.replace("_", "")), name, kind)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise AclNodeError(f"no change: {error!r}") from None


def _text(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
