"""ACLs as words of a command line: `alice Read,Write topic orders --prefixed`. Pure.

A principal without a type is a user: `alice` is `User:alice`. A resource is a kind and a name; the
cluster has no name. What is not said is that an ACL allows, from every host, for this name alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from ottla.protocol.access import CLUSTER_NAME, OPERATIONS_OF, Operation, Resource
from ottla.security.acl import (
    ANY_HOST,
    ANY_NAME,
    Acl,
    Entry,
    Pattern,
    PatternType,
    Permission,
    code_of,
    is_host,
    word,
)
from ottla.security.principal import USER, parse_principal

KINDS: Final = {each.name.lower().replace("_", "-"): each for each in Resource}
"""`topic`, `transactional-id` … as they are typed."""
DENY: Final = "--deny"
PREFIXED: Final = "--prefixed"
HOST: Final = "--host"
CLUSTER: Final = "cluster"


class AclWordsError(ValueError):
    """These words are no ACL. The text is one sentence, and says what is expected."""


def kind_of(resource: Resource) -> str:
    """The word for a kind of resource."""
    return resource.name.lower().replace("_", "-")


def principal_of(text: str) -> str:
    """`alice` as `User:alice`; what has a type, as it is. Raises AclWordsError."""
    try:
        return str(parse_principal(text if ":" in text else f"{USER}:{text}"))
    except ValueError as error:
        raise AclWordsError(f"{error}.") from None


def resource_of(kind: str, name: str | None) -> tuple[Resource, str]:
    """Raises AclWordsError."""
    found = KINDS.get(kind.lower())
    if found is None:
        raise AclWordsError(f"{kind!r} is no kind of resource: {', '.join(KINDS)}.")
    if found is Resource.CLUSTER:
        if name not in (None, CLUSTER_NAME):
            raise AclWordsError(f"the cluster has no other name than {CLUSTER_NAME}.")
        return found, CLUSTER_NAME
    if not name:
        raise AclWordsError(f"{kind} needs a name; {ANY_NAME!r} is every name.")
    return found, name


def operations_of(text: str, resource: Resource) -> list[Operation]:
    """`Read,Write` as operations that this kind of resource has. Raises AclWordsError."""
    allowed = (Operation.ALL, *OPERATIONS_OF[resource])
    found: list[Operation] = []
    for each in text.split(","):
        try:
            operation = code_of(Operation, each.strip().replace("_", "").replace("-", ""))
        except ValueError:
            operation = None
        if operation not in allowed:
            names = ", ".join(map(word, allowed))
            raise AclWordsError(f"{each!r} is no operation on a {kind_of(resource)}: {names}.")
        found.append(operation)
    return list(dict.fromkeys(found))


def acls_of(
    principal: str,
    operations: str,
    kind: str,
    name: str | None,
    *,
    deny: bool = False,
    prefixed: bool = False,
    hosts: Sequence[str] = (),
) -> list[Acl]:
    """One for each operation and host. Raises AclWordsError."""
    resource, named = resource_of(kind, name)
    if prefixed and (resource is Resource.CLUSTER or named == ANY_NAME):
        raise AclWordsError(f"{PREFIXED} needs the beginning of names.")
    for host in hosts:
        if not host or not is_host(host):
            raise AclWordsError(f"{host!r} is no address, and no range such as 10.0.0.0/8.")
    pattern = Pattern(resource, named, PatternType.PREFIXED if prefixed else PatternType.LITERAL)
    permission = Permission.DENY if deny else Permission.ALLOW
    return [
        Acl(pattern, Entry(principal_of(principal), host, operation, permission))
        for operation in operations_of(operations, resource)
        for host in hosts or (ANY_HOST,)
    ]


def parse_acls(text: str) -> list[Acl]:
    """The ACLs of one line of words. Raises AclWordsError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise AclWordsError(f"{text!r}: {error}.") from None
    flags = {each: each in words for each in (DENY, PREFIXED)}
    plain, hosts, following = [], [], iter(word for word in words if word not in flags)
    for each in following:
        if each == HOST:
            hosts.append(next(following, ""))
        else:
            plain.append(each)
    if not 3 <= len(plain) <= 4:
        raise AclWordsError(f"{text!r}: expected a principal, operations, and a kind with a name.")
    principal, operations, kind, name = [*plain, None][:4]
    assert principal is not None
    assert operations is not None
    assert kind is not None
    return acls_of(
        principal,
        operations,
        kind,
        name,
        deny=flags[DENY],
        prefixed=flags[PREFIXED],
        hosts=hosts,
    )


def words_of(acl: Acl) -> str:
    """The inverse of `parse_acls` for one ACL, quoted for a shell."""
    pattern, entry = acl
    words = [entry.principal, word(entry.operation), kind_of(pattern.resource)]
    if pattern.resource is not Resource.CLUSTER:
        words.append(pattern.name)
    if entry.permission is Permission.DENY:
        words.append(DENY)
    if pattern.type is PatternType.PREFIXED:
        words.append(PREFIXED)
    if entry.host != ANY_HOST:
        words += [HOST, entry.host]
    return shlex.join(words)
