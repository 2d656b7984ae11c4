"""Commands that are still declared with typer, as click's: to be deleted with the last of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import click
import typer
from typer.models import ArgumentInfo, OptionInfo

from ottla.cli.command import Command, Group
from ottla.cli.context import BOOTSTRAP, CLIENT_CONFIG, PROFILE, cluster_of
from ottla.cli.typer_options import Bootstrap
from ottla.cli.value_types import Number, WholeNumber


class Bridged(Group):
    """A group of typer's."""

    def __init__(self, name: str, app: typer.Typer) -> None:
        super().__init__(name, help=app.info.help)
        self._all: dict[str, click.Command] = {}
        for each in app.registered_commands:
            assert each.callback is not None
            called = each.name or each.callback.__name__.replace("_", "-")
            self._all[called] = bridged(called, each.callback)
        for group in app.registered_groups:
            assert group.typer_instance is not None
            assert group.name is not None
            self._all[group.name] = Bridged(group.name, group.typer_instance)

    def names(self) -> list[str]:
        return list(self._all)

    def load(self, name: str) -> click.Command | None:
        return self._all.get(name)


def bridged(name: str, function: Callable[..., Any]) -> Command:
    """A function with typer's annotations as a command of click's."""
    signature = inspect.signature(function)
    hints = get_type_hints(function, include_extras=True)
    takes_cluster = hints.get("bootstrap") == Bootstrap
    takers: dict[str, Callable[[Any], Any]] = {}
    contexts = []
    parameters: list[Any] = []
    for each in signature.parameters.values():
        hint = hints[each.name]
        if hint is typer.Context:
            contexts.append(each.name)
            continue
        if takes_cluster and each.name in ("bootstrap", "client_config"):
            continue
        kind, info = get_args(hint)[:2]
        decorator, taker = parameter_of(each, kind, info)
        parameters.append(decorator)
        takers[each.name] = taker

    def call(**options: Any) -> Any:
        context = click.get_current_context()
        given = {key: takers[key](options[key]) for key in takers}
        if takes_cluster:
            names = ("bootstrap", "client_config", "profile")
            cluster = cluster_of(context, *(options[key] for key in names))
            given["bootstrap"] = cluster.bootstrap
            if "client_config" in signature.parameters:
                given["client_config"] = list(cluster.client_config) or None
        given |= dict.fromkeys(contexts, context)
        try:
            return function(**given)
        except typer.Exit as end:
            raise click.exceptions.Exit(end.exit_code) from None

    call.__doc__ = function.__doc__
    call.__module__ = function.__module__
    made: Any = call
    if takes_cluster:
        made = BOOTSTRAP(CLIENT_CONFIG(PROFILE(made)))
    for decorator in reversed(parameters):
        made = decorator(made)
    return click.command(name, cls=Command)(made)


def parameter_of(parameter: inspect.Parameter, hint: Any, info: Any) -> tuple[Any, Any]:
    """The decorator of a parameter, and what turns click's value into that of the function."""
    kind = hint
    if get_origin(hint) in (Union, UnionType):
        kind = next(each for each in get_args(hint) if each is not NoneType)
    is_list = get_origin(kind) is list
    if is_list:
        (kind,) = get_args(kind)
    default = None if parameter.default is inspect.Parameter.empty else parameter.default
    options: dict[str, Any] = {
        "type": type_of(kind, info),
        "help": info.help,
        "metavar": info.metavar,
        "required": parameter.default is inspect.Parameter.empty,
        "default": default.value if isinstance(default, Enum) else default,
    }
    if info.autocompletion is not None:
        options["shell_complete"] = completing(info.autocompletion)
    taker = enum_of(kind) if isinstance(kind, type) and issubclass(kind, Enum) else unchanged
    if is_list:
        one = taker
        options["default"] = default
        taker = lambda value: [one(each) for each in value] or default  # noqa: E731
    if isinstance(info, ArgumentInfo):
        if is_list:
            options["nargs"] = -1
        if info.metavar and is_list:
            options["metavar"] = (
                f"{info.metavar}..." if options["required"] else f"[{info.metavar}]..."
            )
        elif info.metavar and not options["required"]:
            options["metavar"] = f"[{info.metavar}]"
        if default is None:
            del options["default"]
        return click.argument(parameter.name, **options), taker
    assert isinstance(info, OptionInfo)
    if kind is bool:
        options |= {"is_flag": True, "type": None}
    given = [info.default, *(info.param_decls or ())]
    declared = [each for each in given if isinstance(each, str) and each.startswith("-")]
    if not declared:
        name = parameter.name.replace("_", "-")
        declared = [f"--{name}/--no-{name}" if kind is bool else f"--{name}"]
    options |= {"multiple": is_list, "hidden": info.hidden, "envvar": info.envvar}
    if is_list or default is None:
        del options["default"]
    return click.option(parameter.name, *declared, **options), taker


def type_of(kind: Any, info: Any) -> Any:
    if kind is int:
        return WholeNumber(info.min, info.max)
    if kind is float:
        return Number(info.min, info.max)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return click.Choice([str(each.value) for each in kind])
    return click.Path(path_type=Path) if kind is Path else str


def enum_of(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else kind(value)


def unchanged(value: Any) -> Any:
    return value


def completing(function: Callable[..., Sequence[Any]]) -> Callable[..., Any]:
    """click's form of a completion."""
    count = len(inspect.signature(function).parameters)

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Any:
        # Imported late: only a shell needs it.
        from click.shell_completion import CompletionItem

        words = (context, parameter, incomplete)
        if count == 2:
            words = (context, incomplete)  # type: ignore[assignment]
        found = function(*words[-count:])
        return [CompletionItem(*each) if isinstance(each, tuple) else each for each in found]

    return complete
