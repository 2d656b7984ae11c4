"""The help of every command: whole sentences at any width, and no names of Python's types.

typer prints the type of each option (`<bool>` for a flag, `<str>` for a topic), which says nothing
that the option's own word does not say, and keeps the line breaks of the source.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup

from ottla.cli.option_values import take_text_as_it_is


def reflowed(text: str) -> str:
    """The paragraphs of a docstring, each in one line."""
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def plain(parameters: Iterable[Any]) -> list[Any]:
    """The parameters: flags and named arguments show no type, and text is taken as it is."""
    shown = list(parameters)
    for each in shown:
        take_text_as_it_is(each)
        if each.param_type_name == "argument" or getattr(each, "is_flag", False):
            each.display_type_rich = lambda ctx: None
    return shown


class Command(TyperCommand):
    """A command with such help."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.help = reflowed(self.help or "")

    def get_params(self, ctx: Any) -> list[Any]:
        return plain(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands with such help."""

    def get_params(self, ctx: Any) -> list[Any]:
        return plain(super().get_params(ctx))
