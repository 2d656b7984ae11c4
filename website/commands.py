"""The reference of the command line, generated from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

import typer
import typer.core

from ottla.cli.app import COMMANDS, build

HEAD: Final = """# Commands

Every command with its arguments and options, generated from the commands. `ottla COMMAND --help`
prints the same. [The command line](cli.md) shows them at work.

"""


def page() -> str:
    """The page as Markdown."""
    root = typer.main.get_command(build([]))
    parts = [HEAD]
    for name in COMMANDS:
        parts += described(f"ottla {name}", root.commands[name], 2)  # type: ignore[attr-defined]
    return "\n".join(parts)


def described(path: str, command: Any, level: int) -> Iterator[str]:
    """The Markdown of one command, and of the commands in it."""
    yield f"{'#' * level} {path}\n"
    yield f"{sentences(command.help or '')}\n"
    inner = getattr(command, "commands", None)
    if inner:
        for name, each in inner.items():
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


def usage(path: str, command: Any) -> str:
    words = [argument_name(each) for each in command.params if is_argument(each)]
    return " ".join([path, "[OPTIONS]", *words])


def is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def argument_name(argument: Any) -> str:
    pieces = argument.get_usage_pieces(typer.Context(typer.core.TyperCommand("ottla")))
    return " ".join(pieces).replace("{", "").replace("}", "")


def arguments(command: Any) -> list[tuple[str, str]]:
    return [
        (f"`{argument_name(each)}`", sentences(each.help or ""))
        for each in command.params
        if is_argument(each)
    ]


def options(command: Any) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for each in command.params:
        if is_argument(each) or getattr(each, "hidden", False):
            continue
        names = sorted([*each.opts, *each.secondary_opts], key=len, reverse=True)
        value = "" if each.is_flag else f" {each.metavar or value_name(each)}"
        shown = ", ".join(f"`{name}{value if name == names[0] else ''}`" for name in names)
        rows.append((shown, sentences(each.help or "") + default(each)))
    return rows


def value_name(option: Any) -> str:
    """The words that an option takes, or its own name."""
    if isinstance(option.default, Enum):
        return "|".join(str(each.value) for each in type(option.default))
    return str(option.name).upper().replace("_", "-")


def default(option: Any) -> str:
    """The default, where the help does not name it."""
    value = option.default.value if isinstance(option.default, Enum) else option.default
    if callable(value) or value in (None, "", ()) or option.is_flag or "efault" in option.help:
        return ""
    return f" Default: `{value}`."
