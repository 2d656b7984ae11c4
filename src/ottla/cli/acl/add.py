"""`ottla acl add`."""

from __future__ import annotations

from typing import Any

from ottla.cli.acl.options import (
    DENY,
    HOSTS,
    PREFIXED,
    named_acls,
    operation_argument,
    principal_argument,
    resource_arguments,
)
from ottla.cli.acl_rows import shown_acls
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit
from ottla.client.admin.acls import create_acls


@command()
@principal_argument()
@operation_argument("Such as Read, or several: Read,Write. All is every one.", "OPERATION[,...]")
@resource_arguments()
@DENY
@PREFIXED
@HOSTS
@AS_JSON
@cluster_options
def add(cluster: Cluster, as_json: bool, **words: Any) -> None:
    """Add ACLs that allow, or with --deny deny.

    `ottla acl add alice Read,Write topic orders` is for one topic. A consumer needs Read on its
    topics and on its group, a producer Write on its topics. An ACL that exists stays.
    """
    acls = named_acls(**words)
    create_acls(cluster.client, acls)
    emit(shown_acls(acls), as_json=as_json)
