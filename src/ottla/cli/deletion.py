"""Deletes by name, or what is shown: asks first, and reports as text or JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ottla.cli.confirmation import confirm
from ottla.cli.rows import emit, show_rows
from ottla.cli.screen import say, show_json
from ottla.wording.plural import plural


def delete_all(
    kind: str,
    names: Sequence[str],
    delete: Callable[[str], None],
    with_what: str,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete `names`, all of one `kind` (topic, group); `with_what` is deleted with them.

    Raises click's Exit with code 1 if the user answers no, and what `delete` raises for the first
    that cannot be deleted.
    """
    confirm(
        f"Delete {', '.join(names)} with all {with_what}?",
        yes=yes,
        what_else=f"To delete without confirmation: ottla {kind} delete {' '.join(names)} --yes",
        refused="Nothing was deleted.",
    )
    for name in names:
        delete(name)
        if not as_json:
            say(f"Deleted {kind} {name}.")
    if as_json:
        show_json([{kind: name, "deleted": True} for name in names])


def delete_shown(
    rows: Sequence[Any], noun: str, delete: Callable[[], None], *, yes: bool, as_json: bool
) -> None:
    """Delete what the rows show, all at once; they are shown before the question, and as deleted.

    Raises as `delete_all`.
    """
    if not yes and not as_json:
        show_rows(rows)
    confirm(
        f"Delete {plural(len(rows), noun)}?",
        yes=yes,
        refused="Nothing was deleted.",
    )
    delete()
    if as_json:
        emit(rows, as_json=True)
        return
    say(f"Deleted {plural(len(rows), noun)}:")
    show_rows(rows)
