"""`ottla acl check`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ottla.cli.acl.options import (
    named_acls,
    operation_argument,
    principal_argument,
    resource_arguments,
)
from ottla.cli.acl_rows import ShownAcl, shown_acl, shown_acls
from ottla.cli.command import command
from ottla.cli.context import Cluster, cluster_options
from ottla.cli.failures import EXIT_FAILED, UsageFailed
from ottla.cli.options import AS_JSON
from ottla.cli.rows import emit, row, show_rows
from ottla.cli.screen import note, say
from ottla.client.admin.authorizer import Judgement, judge
from ottla.security.acl import ANY_HOST, Acl, word
from ottla.security.acl_words import kind_of
from ottla.security.authorizer import Asked

WORDS = {True: "Allowed", False: "Denied", None: "Unknown"}


@row
class Checked:
    """Whether a principal may, and which ACL decides; without one, `because` says why. `allowed` is
    None if that depends on settings that the brokers do not show. `other_hosts`: ACLs for certain
    addresses that may decide otherwise.
    """

    principal: str
    operation: str
    kind: str
    name: str
    host: str | None
    allowed: bool | None
    because: str
    acl: ShownAcl | None
    other_hosts: Sequence[ShownAcl]

    def show(self) -> None:
        say(f"{WORDS[self.allowed]}: {self.because}.")
        if self.acl is not None:
            show_rows([self.acl])
        if self.other_hosts:
            note("From some addresses another ACL may decide; ask with --host ADDRESS:")
            show_rows(self.other_hosts)


@command()
@principal_argument()
@operation_argument("Such as Read.")
@resource_arguments()
@click.option("--host", metavar="ADDRESS", help="The client's address. Default: any.")
@AS_JSON
@cluster_options
def check(cluster: Cluster, host: str | None, as_json: bool, **words: Any) -> int:
    """Say whether a principal may do something, and which ACL decides. Exit code 1 if not.

    For example: `ottla acl check alice Read topic orders`.
    """
    hosts = [] if host is None else [host]
    one, *more = named_acls(**words, hosts=hosts)
    if more:
        raise UsageFailed("check takes one operation.", "For example: Read")
    asked = Asked(
        one.entry.principal,
        one.entry.host,
        one.entry.operation,
        one.pattern.resource,
        one.pattern.name,
    )
    found = judge(cluster.client, asked)
    emit(checked(asked, found, host), as_json=as_json)
    return 0 if found.allowed else EXIT_FAILED


def checked(asked: Asked, found: Judgement, host: str | None) -> Checked:
    acl = found.because if isinstance(found.because, Acl) else None
    because = "this ACL decides" if isinstance(found.because, Acl) else found.because
    if found.allowed is None:
        because += ". A super user may nevertheless, and the brokers do not show who is one"
    return Checked(
        asked.principal,
        word(asked.operation),
        kind_of(asked.resource),
        asked.name,
        None if asked.host == ANY_HOST else host,
        found.allowed,
        because,
        None if acl is None else shown_acl(acl),
        shown_acls(found.elsewhere),
    )
