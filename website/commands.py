"""The reference of the command line, generated from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from ottla.cli.app import root
from ottla.cli.command import Group

HEAD: Final = """# Commands

Every command with its arguments and options, generated from the commands. `ottla COMMAND --help`
prints the same. [The command line](cli.md) shows them at work.

"""


def page() -> str:
    """The page as Markdown."""
    parts = [HEAD]
    for name, command in root().all().items():
        parts += described(f"ottla {name}", command, 2)
    return "\n".join(parts)


def described(path: str, command: click.Command, level: int) -> Iterator[str]:
    """The Markdown of one command, and of the commands in it."""
    yield f"{'#' * level} {path}\n"
    yield f"{sentences(command.help or '')}\n"
    if isinstance(command, Group):
        for name, each in command.all().items():
            yield from described(f"{path} {name}", each, level + 1)
        return
    yield f"```text\n{usage(path, command)}\n```\n"
    for head, rows in (("Argument", arguments(command)), ("Option", options(command))):
        if rows:
            yield f"| {head} | |\n|---|---|"
            yield "\n".join(f"| {cell(name)} | {cell(what)} |" for name, what in rows) + "\n"


def sentences(text: str) -> str:
    """Help text as Markdown: what looks like HTML would disappear."""
    return text.strip().replace("<", "&lt;")


def cell(text: str) -> str:
    return text.replace("|", r"\|")


def usage(path: str, command: click.Command) -> str:
    words = [name.strip("`") for name, _ in arguments(command)]
    return " ".join([path, "[OPTIONS]", *words])


def arguments(command: click.Command) -> list[tuple[str, str]]:
    context = click.Context(command)
    return [
        (f"`{each.make_metavar(context)}`", sentences(each.help or ""))
        for each in command.params
        if isinstance(each, click.Argument)
    ]


def options(command: click.Command) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for each in command.params:
        if not isinstance(each, click.Option) or each.hidden:
            continue
        names = sorted([*each.opts, *each.secondary_opts], key=len, reverse=True)
        value = "" if each.is_flag else f" {each.metavar or value_name(each)}"
        shown = ", ".join(f"`{name}{value if name == names[0] else ''}`" for name in names)
        rows.append((shown, sentences(each.help or "") + default(each)))
    return rows


def value_name(option: click.Option) -> str:
    """The words that an option takes, the name of its type, or its own."""
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    if not isinstance(option.type, type(click.STRING)):
        return option.type.name.upper()
    return str(option.name).upper().replace("_", "-")


def default(option: click.Option) -> str:
    """The default, where the help does not name it."""
    value = option.to_info_dict()["default"]
    if value in (None, "", (), []) or option.is_flag or "efault" in (option.help or ""):
        return ""
    return f" Default: `{value}`."
