"""The words that say what an ACL is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from ottla.cli.complete import complete_group, complete_topic, complete_user, of_words
from ottla.cli.failures import UsageFailed
from ottla.cli.options import Parameter
from ottla.protocol.access import Operation, Resource
from ottla.security.acl import Acl, word
from ottla.security.acl_words import KINDS, AclWordsError, acls_of, resource_of

AN_ACL: Final = "alice Read topic orders"
A_RESOURCE: Final = "topic orders"
NO_ACLS: Final = "No ACLs. Add one with: ottla acl add PRINCIPAL OPERATION KIND NAME"
COMPLETE: Final = {
    Resource.TOPIC: complete_topic,
    Resource.GROUP: complete_group,
    Resource.USER: complete_user,
}
complete_kind: Final = of_words(lambda: KINDS)


def complete_operation(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Operations; after a comma, the next one."""
    before, comma, last = incomplete.rpartition(",")
    return [
        f"{before}{comma}{word(each)}"
        for each in Operation
        if word(each).lower().startswith(last.lower())
    ]


def complete_name(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Topics after `topic`, groups after `group`, users after `user`."""
    kind = KINDS.get(str(context.params.get("kind")).lower())
    complete = COMPLETE.get(kind or Resource.CLUSTER)
    return [] if complete is None else complete(context, parameter, incomplete)


def principal_argument(**more: Any) -> Parameter:
    options = {
        "metavar": "PRINCIPAL",
        "shell_complete": complete_user,
        "help": "A user such as alice, or User:CN=alice,O=Example; User:* is everybody.",
    }
    return click.argument("principal", **{**options, **more})


def operation_argument(help_: str, metavar: str = "OPERATION", **more: Any) -> Parameter:
    options = {"metavar": metavar, "shell_complete": complete_operation, "help": help_}
    return click.argument("operation", **{**options, **more})


def resource_arguments(**more: Any) -> Parameter:
    """`kind` and `name`."""
    kind = click.argument(
        "kind",
        **{
            "metavar": "KIND",
            "shell_complete": complete_kind,
            "help": f"One of {', '.join(KINDS)}.",
            **more,
        },
    )
    name = click.argument(
        "name",
        metavar="[NAME]",
        required=False,
        shell_complete=complete_name,
        help="Its name; '*' is every name. The cluster has none.",
    )

    def both(function: Callable[..., Any]) -> Callable[..., Any]:
        return kind(name(function))

    return both


PREFIXED: Final = click.option("--prefixed", is_flag=True, help="NAME is the beginning of names.")
DENY: Final = click.option("--deny", is_flag=True, help="An ACL that denies; it always wins.")
HOSTS: Final = click.option(
    "--host",
    "hosts",
    metavar="ADDRESS",
    multiple=True,
    help="Only from this address, or from a range such as 10.0.0.0/8. Repeatable.",
)


@contextmanager
def words_are_usage(right: str) -> Iterator[None]:
    """What is wrong with the words is wrong usage; `right` are words for this command."""
    try:
        yield
    except AclWordsError as error:
        command = click.get_current_context().command_path
        raise UsageFailed(str(error), f"For example: {command} {right}") from None


def named_acls(*, operation: str, **words: Any) -> list[Acl]:
    """What the words mean, see `acls_of`. Raises UsageFailed."""
    with words_are_usage(AN_ACL):
        return acls_of(operations=operation, **words)


def named_resource(kind: str, name: str | None) -> tuple[Resource, str]:
    """Raises UsageFailed."""
    with words_are_usage(A_RESOURCE):
        return resource_of(kind, name)
