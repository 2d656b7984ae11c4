"""A command and a group of commands: their help, and how a group finds its commands.

Help is whole sentences at any width. click would keep the line breaks of the source, and cut the
summaries in a list of commands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click

from ottla.cli.docstrings import docstrings_of

HEADING: Final = re.compile(r"^(Usage|Arguments|Options|Commands):", re.MULTILINE)


def reflowed(text: str) -> str:
    """The paragraphs of a docstring, each in one line."""
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def summary_of(docstring: str) -> str:
    """Its first paragraph."""
    return reflowed(docstring).partition("\n\n")[0]


def with_headings(text: str) -> str:
    """The help with its headings in bold, which click prints only on terminals."""
    if os.environ.get("NO_COLOR"):
        return text
    return HEADING.sub(lambda found: click.style(found[0], bold=True), text)


class Command(click.Command):
    """A command with such help."""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        self.help = reflowed(self.help or "")
        self.short_help = summary_of(self.help)

    def get_help(self, ctx: click.Context) -> str:
        return with_headings(super().get_help(ctx))

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        given = [each for each in self.params if isinstance(each, click.Argument)]
        if given:
            with formatter.section("Arguments"):
                formatter.write_dl([each.get_help_record(ctx) for each in given])


class Group(Command, click.Group):
    """A group whose commands are imported when they are typed."""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, no_args_is_help=True, **options)

    def names(self) -> list[str]:
        """The commands in the order of the help."""
        raise NotImplementedError

    def load(self, name: str) -> click.Command | None:
        """The command; None if there is none of that name."""
        raise NotImplementedError

    def summaries(self) -> Mapping[str, str]:
        """What the help says of each command, by name."""
        return {name: command.short_help or "" for name, command in self.all().items()}

    def all(self) -> dict[str, click.Command]:
        """All commands by name. Imports them."""
        found = {name: self.load(name) for name in self.names()}
        return {name: command for name, command in found.items() if command is not None}

    def leaves(self, before: str = "") -> dict[str, click.Command]:
        """The commands in this group and in its groups, by their words: `log stray list`."""
        found: dict[str, click.Command] = {}
        for name, command in self.all().items():
            if isinstance(command, Group):
                found |= command.leaves(f"{before}{name} ")
            else:
                found[f"{before}{name}"] = command
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return self.names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.load(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(
                error.command_name, possibilities=self.names(), ctx=ctx
            ) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries().items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        # Imported late: only a shell needs it.
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=summary)
            for name, summary in self.summaries().items()
            if name.startswith(incomplete)
        ]
        return found + Command.shell_complete(self, ctx, incomplete)


class Folder(Group):
    """The commands in a package: each module that has a command is one. The package's docstring is
    the help, and its `FIRST` names what is listed first; the others follow by name.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._module = import_module(package)
        super().__init__(word_of(package), help=self._module.__doc__)

    @cached_property
    def _summaries(self) -> dict[str, str]:
        folder = Path(str(self._module.__file__)).parent
        by_name = {word_of(module): summary_of(text) for module, text in docstrings_of(folder)}
        first: Iterable[str] = getattr(self._module, "FIRST", ())
        return {name: by_name[name] for name in dict.fromkeys([*first, *sorted(by_name)])}

    def names(self) -> list[str]:
        return list(self._summaries)

    def summaries(self) -> Mapping[str, str]:
        return self._summaries

    def load(self, name: str) -> click.Command | None:
        if not name.replace("-", "").isalnum():
            return None
        found = command_in(f"{self._package}.{module_of(name)}")
        return found if found is not None and found.name == name else None


def module_of(name: str) -> str:
    """`delete_offsets` for `delete-offsets`, and `import_` for `import`."""
    return f"{name}_" if iskeyword(name) else name.replace("-", "_")


def word_of(module: str) -> str:
    return module.rpartition(".")[2].rstrip("_").replace("_", "-")


def command_in(module: str) -> click.Command | None:
    """The command of a module; of a package its module `command`, or else the group that it is.
    None without one, or without such a module.
    """
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        return None
    if hasattr(found, "__path__"):
        return command_in(f"{module}.command") or Folder(module)
    return next((each for each in vars(found).values() if is_command_of(each, found)), None)


def is_command_of(value: object, module: ModuleType) -> bool:
    return (
        isinstance(value, click.Command)
        and getattr(value.callback, "__module__", None) == module.__name__
    )


def command(name: str | None = None) -> Callable[[Callable[..., Any]], Command]:
    """Makes a command of a function: its docstring is the help, its first paragraph the summary."""

    def made(function: Callable[..., Any]) -> Command:
        called = name or function.__name__.rstrip("_").replace("_", "-")
        return click.command(called, cls=Command)(function)

    return made
