"""Deletes by name: asks first, deletes one after the other, and reports as text or JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

from ottla.cli.client import Connection
from ottla.cli.confirmation import confirm
from ottla.cli.screen import say, show_json

Begin: TypeAlias = Callable[..., Mapping[str, Future[Any]]]
"""An admin client's call: takes names and `request_timeout` (s), returns a future per name."""


def delete_all(
    connection: Connection,
    kind: str,
    names: Sequence[str],
    begin: Begin,
    *,
    with_what: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete `names`, all of one `kind` (topic, group); `with_what` is deleted with them.

    Raises click's Exit with code 1 if the user answers no, and Failed for the first that cannot
    be deleted.
    """
    confirm(
        f"Delete {', '.join(names)} with all {with_what}?",
        yes=yes,
        what_else=f"To delete without confirmation: ottla {kind} delete {' '.join(names)} --yes",
        refused="Nothing was deleted.",
    )
    futures = begin(list(names), request_timeout=connection.answer_timeout_s)
    for name in names:
        connection.wait(futures[name], f"delete {kind} {name!r}")
        if not as_json:
            say(f"Deleted {kind} {name}.")
    if as_json:
        show_json([{kind: name, "deleted": True} for name in names])
