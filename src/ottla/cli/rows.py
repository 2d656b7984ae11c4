"""Typed rows: a command returns them once, and they are printed as a table or as JSON.

A class with `@row` is a dataclass. The names of its fields are those of the JSON document (`from_`
is `from`, which is a word of Python), and `column` says of a field how a table shows it. What is
more than a table has a method `show`, which prints it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any, Final, TypeVar, dataclass_transform

from ottla.cli.screen import note, say, show_json, show_table

KEY: Final = "column"


@dataclass(frozen=True, slots=True)
class Column:
    """How a field is shown. `cell` computes the text from the whole row; a column that
    `is_optional` is left out if all its cells are empty.
    """

    heading: str | None = None
    cell: Callable[[Any], object] | None = None
    is_optional: bool = False
    in_table: bool = True
    in_json: bool = True


PLAIN: Final = Column()


class NotAsked(Enum):
    """The value of a field that nobody asked for: JSON leaves it out."""

    NOT_ASKED = ""


NOT_ASKED: Final = NotAsked.NOT_ASKED


def column(
    heading: str | None = None,
    cell: Callable[[Any], object] | None = None,
    *,
    is_optional: bool = False,
    in_json: bool = True,
    **default: Any,
) -> Any:
    """A field of a row with a heading of its own. `default` as of `dataclasses.field`."""
    shown = Column(heading, cell, is_optional, in_json=in_json)
    return field(metadata={KEY: shown}, **default)


def only_json(**default: Any) -> Any:
    """A field that tables leave out."""
    return field(metadata={KEY: Column(in_table=False)}, **default)


T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(column, only_json))
def row(kind: type[T]) -> type[T]:
    """Makes a dataclass of a class: a row, or a document with rows in it."""
    return dataclass(frozen=True)(kind)


def document(value: Any) -> Any:
    """What `--json` prints of a row, or of whatever has rows in it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name.rstrip("_"): document(getattr(value, each.name))
            for each in fields(value)
            if each.metadata.get(KEY, PLAIN).in_json and getattr(value, each.name) is not NOT_ASKED
        }
    if isinstance(value, dict):
        return {key: document(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [document(each) for each in value]
    return value


def show_rows(rows: Sequence[Any], *, title: str | None = None, like: Any = None) -> None:
    """A table. `like`: the class of the rows, if there may be none."""
    shown = [
        (each, each.metadata.get(KEY, PLAIN))
        for each in fields(like or rows[0])
        if each.metadata.get(KEY, PLAIN).in_table
    ]
    headings = [
        each.name.rstrip("_").replace("_", " ") if kind.heading is None else kind.heading
        for each, kind in shown
    ]
    show_table(
        headings,
        [
            [kind.cell(one) if kind.cell else getattr(one, each.name) for each, kind in shown]
            for one in rows
        ],
        title=title,
        drop_empty=[
            heading for heading, (_, kind) in zip(headings, shown, strict=True) if kind.is_optional
        ],
    )


def emit(
    result: Any,
    *,
    as_json: bool,
    none: str = "",
    show: Callable[[Any], None] | None = None,
    show_each: Callable[[Any], None] | None = None,
) -> None:
    """Print what a command found: one row, or a list of them; for people `none` if it is empty.
    What has no method `show` is printed by `show`, or one after the other by `show_each`.
    """
    if as_json:
        show_json(document(result))
        return
    rows = result if isinstance(result, list | tuple) else [result]
    if not rows:
        if none:
            note(none)
    elif show is not None:
        show(result)
    elif show_each is None and not hasattr(rows[0], "show"):
        show_rows(rows)
    else:
        for number, one in enumerate(rows):
            if number:
                say("")
            (show_each or type(one).show)(one)
