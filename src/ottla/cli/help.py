"""The help of every command: whole sentences at any width, and no names of Python's types.

typer prints the type of each option (`<bool>` for a flag, `<str>` for a topic), which says nothing
that the option's own word does not say, keeps the line breaks of the source, and cuts the summaries
in a list of commands. Its panels cut words on narrow terminals, and take longer to import than all
the rest of a command (`typer.rich_utils`): so the help is its plain text, with headings in bold.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from ottla.cli.option_values import take_text_as_it_is

HEADING: Final = re.compile(r"^(Usage|Arguments|Options|Commands):", re.MULTILINE)


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


def with_headings(text: str) -> str:
    """The help with its headings in bold, which typer prints only on terminals."""
    if os.environ.get("NO_COLOR"):
        return text
    return HEADING.sub(lambda found: typer.style(found[0], bold=True), text)


class Command(TyperCommand):
    """A command with such help."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.help = reflowed(self.help or "")
        self.short_help = self.help.partition("\n\n")[0]

    def get_params(self, ctx: Any) -> list[Any]:
        return plain(super().get_params(ctx))

    def get_help(self, ctx: Any) -> str:
        return with_headings(super().get_help(ctx))


class Group(TyperGroup):
    """A group of commands with such help."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.short_help = reflowed(self.help or "").partition("\n\n")[0]

    def get_params(self, ctx: Any) -> list[Any]:
        return plain(super().get_params(ctx))

    def get_help(self, ctx: Any) -> str:
        return with_headings(super().get_help(ctx))
