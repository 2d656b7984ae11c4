"""`--profile NAME`: every command with --bootstrap gets it, and finds its cluster in this order:
--bootstrap, --profile, OTTLA_BOOTSTRAP, OTTLA_PROFILE, the current profile, localhost:9092.

A profile is used as a whole: its settings for librdkafka apply with its addresses, or if --profile
names it. Those of --client-config override them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any, Final, get_type_hints

import typer

from ottla.cli.failures import Failed
from ottla.cli.profiles import NAME_VARIABLE, Profile, profiles_file, read_profiles

OPTION: Final = "profile"
CONTEXT: Final = "context_of_profile"


def profile_names(incomplete: str) -> list[str]:
    """Profiles that begin with what was typed."""
    try:
        names = read_profiles(profiles_file()).by_name
    except Failed:
        return []
    return sorted(name for name in names if name.startswith(incomplete))


ProfileName = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="The profile of the cluster (ottla profile).",
        autocompletion=profile_names,
    ),
]


def with_profile(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with --profile, if it has --bootstrap."""
    signature = inspect.signature(command)
    if "bootstrap" not in signature.parameters or OPTION in signature.parameters:
        return command

    @wraps(command)
    def with_cluster(**options: Any) -> Any:
        context: typer.Context = options.pop(CONTEXT)
        bootstrap, client_config = cluster_of(
            context, options["bootstrap"], options.get("client_config"), options.pop(OPTION)
        )
        options["bootstrap"] = bootstrap
        if "client_config" in signature.parameters:
            options["client_config"] = client_config
        return command(**options)

    hints = get_type_hints(command, include_extras=True)
    added = {OPTION: ProfileName, CONTEXT: typer.Context}
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        each.replace(annotation=hints[each.name], kind=kind)
        for each in signature.parameters.values()
    ]
    parameters += [
        inspect.Parameter(OPTION, kind, default=None, annotation=ProfileName),
        inspect.Parameter(CONTEXT, kind, annotation=typer.Context),
    ]
    with_cluster.__annotations__ = {**hints, **added}
    with_cluster.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters
    )
    return with_cluster


def cluster_of(
    context: typer.Context,
    bootstrap: str,
    client_config: Sequence[str] | None,
    name: str | None,
) -> tuple[str, list[str] | None]:
    """The addresses and settings of the cluster that a command line means. `name` is that of
    --profile. Raises Failed.
    """
    source = context.get_parameter_source("bootstrap")
    origin = "" if source is None else source.name
    is_typed = origin == "COMMANDLINE"
    given = None if client_config is None else list(client_config)
    if name is None and (is_typed or origin == "ENVIRONMENT"):
        return bootstrap, given
    profile = found_profile(name)
    if profile is None:
        return bootstrap, given
    return bootstrap if is_typed else profile.bootstrap, merged(given, profile)


def found_profile(name: str | None) -> Profile | None:
    """The named profile, or that of OTTLA_PROFILE, or the current one. Raises Failed."""
    name = name or os.environ.get(NAME_VARIABLE)
    path = profiles_file()
    if name is None and not path.exists():
        return None
    profiles = read_profiles(path)
    name = name or profiles.current
    return None if name is None else profiles.find(name)


def merged(client_config: list[str] | None, profile: Profile) -> list[str] | None:
    """`--client-config` with the profile's settings that it does not set."""
    given = list(client_config or ())
    names = {word.partition("=")[0].strip() for word in given}
    added = [f"{name}={value}" for name, value in profile.client.items() if name not in names]
    return added + given or None
