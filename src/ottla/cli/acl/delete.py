"""`ottla acl delete`."""

from __future__ import annotations

from typing import Any

from ottla.cli.acl.options import (
    AN_ACL,
    DENY,
    HOSTS,
    PREFIXED,
    named_acls,
    operation_argument,
    principal_argument,
    resource_arguments,
    words_are_usage,
)
from ottla.cli.acl_rows import shown_acls
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.deletion import delete_shown
from ottla.cli.failures import Failed, UsageFailed
from ottla.cli.options import AS_JSON, YES
from ottla.client.admin.acls import acls_of_principal, delete_acls
from ottla.security.acl_words import principal_of, words_of


@command()
@principal_argument()
@operation_argument(
    "Such as Read, or several: Read,Write. Default: all ACLs of the principal.",
    "[OPERATION[,...]]",
    required=False,
)
@resource_arguments(required=False, metavar="[KIND]")
@DENY
@PREFIXED
@HOSTS
@YES
@AS_JSON
@cluster_options
def delete(
    cluster: Cluster,
    principal: str,
    operation: str | None,
    kind: str | None,
    yes: bool,
    as_json: bool,
    **more: Any,
) -> None:
    """Delete ACLs, named as for `add`, or all that name a principal. Asks first, unless --yes."""
    with words_are_usage(AN_ACL):
        doomed = acls_of_principal(cluster.client, principal_of(principal))
    if operation is not None or any(more.values()):
        if operation is None or kind is None:
            raise UsageFailed(
                "an ACL has an operation and a resource.",
                f"For example: ottla acl delete {AN_ACL}",
            )
        wanted = named_acls(principal=principal, operation=operation, kind=kind, **more)
        missing = [acl for acl in wanted if acl not in doomed]
        if missing:
            raise Failed(
                f"there is no such ACL: {words_of(missing[0])}.",
                f"To list those of this principal: ottla acl list --principal {principal}",
            )
        doomed = wanted
    if not doomed:
        raise Failed(f"no ACL names {principal_of(principal)}.", "To list all: ottla acl list")
    delete_shown(
        shown_acls(doomed),
        "ACL",
        lambda: delete_acls(cluster.client, doomed),
        yes=yes,
        as_json=as_json,
    )
