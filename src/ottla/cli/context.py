"""The cluster that a command line means, and the options that name it.

A command with `@cluster_options` gets it as its first argument; its client connects with the first
request. It is found in this order: --bootstrap, --profile, OTTLA_BOOTSTRAP, OTTLA_PROFILE, the
current profile, localhost:9092.

A profile is used as a whole: its settings for librdkafka apply with its addresses, or if --profile
names it. Those of --client-config override them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from ottla.cli.failures import OPTIONS, ClusterOptions, UsageFailed
from ottla.cli.name_values import pairs
from ottla.cli.wrapping import print_error

if TYPE_CHECKING:
    from ottla.client.client import Client
    from ottla.client.patience import Patience
    from ottla.client.profiles import Profile

DEFAULT_BOOTSTRAP: Final = "localhost:9092"
CLIENT_ID: Final = "ottla-cli"
ANSWER_WITHIN_S: Final = 10.0


class Cluster:
    """A cluster's addresses, and librdkafka's settings for it as NAME=VALUE."""

    def __init__(
        self,
        bootstrap: str,
        client_config: Sequence[str] = (),
        *,
        patience: Patience | None = None,
        registry: str = "",
        options: ClusterOptions = OPTIONS,
    ) -> None:
        """`patience`: of its client; by default ANSWER_WITHIN_S for a response. `registry`: the
        address of the profile's schema registry. `options`: those that named it.
        """
        self.bootstrap = bootstrap
        self.registry = registry
        self.client_config = tuple(client_config)
        self._patience = patience
        self._options = options

    @cached_property
    def settings(self) -> dict[str, Any]:
        """librdkafka's settings. Raises UsageFailed for those that it rejects."""
        given = pairs(self._options.settings, self.client_config)
        settings = {"bootstrap.servers": self.bootstrap, "client.id": CLIENT_ID, **given}
        if given:
            # Imported late: only this option needs librdkafka.
            from ottla.messaging.librdkafka import check_settings

            if problem := check_settings(settings):
                raise UsageFailed(f"{self._options.settings}: {problem}")
        return settings

    @cached_property
    def client(self) -> Client:
        """Connects with its first request. Raises UsageFailed and ClientError."""
        # Imported late: help and completion need no client.
        from ottla.client.client import Client
        from ottla.client.patience import Patience

        return Client(
            self.bootstrap,
            self.settings,
            client_id=str(self.settings["client.id"]),
            patience=self._patience or Patience(answer_s=ANSWER_WITHIN_S),
            on_wait=print_error,
        )


def complete_profile(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Profiles that begin with what was typed."""
    from ottla.client.profiles import ProfileError, profiles_file, read_profiles

    try:
        names = read_profiles(profiles_file()).by_name
    except ProfileError:
        return []
    return sorted(name for name in names if name.startswith(incomplete))


BOOTSTRAP: Final = click.option(
    "--bootstrap",
    "-b",
    metavar="HOST:PORT",
    envvar="OTTLA_BOOTSTRAP",
    show_envvar=True,
    default=DEFAULT_BOOTSTRAP,
    help="A broker to connect to first, or several separated by commas.",
)
CLIENT_CONFIG: Final = click.option(
    "--client-config",
    metavar="NAME=VALUE",
    multiple=True,
    help="Any librdkafka setting. Repeatable.",
)
PROFILE: Final = click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_profile,
    help="The profile of the cluster (ottla profile).",
)


def cluster_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --bootstrap, --client-config and --profile; the function gets the Cluster first."""

    @wraps(function)
    def with_cluster(
        bootstrap: str, client_config: Sequence[str], profile: str | None, **options: Any
    ) -> Any:
        context = click.get_current_context()
        cluster = context.obj or cluster_of(context, bootstrap, client_config, profile)
        # Imported late: help and completion need no client.
        from ottla.client.errors import RefusedError
        from ottla.client.permission_hint import permission_hint

        try:
            return function(cluster, **options)
        except RefusedError as error:
            error.hint = error.hint or permission_hint(cluster.client.principal, error.lacking)
            raise

    return BOOTSTRAP(CLIENT_CONFIG(PROFILE(with_cluster)))


def cluster_of(
    context: click.Context,
    bootstrap: str,
    client_config: Sequence[str],
    name: str | None,
    patience: Patience | None = None,
) -> Cluster:
    """The cluster that these options mean. `name` is that of --profile. Raises Failed."""
    source = context.get_parameter_source("bootstrap")
    is_typed = source is ParameterSource.COMMANDLINE
    if name is None and (is_typed or source is ParameterSource.ENVIRONMENT):
        return Cluster(bootstrap, client_config, patience=patience)
    profile = found_profile(name)
    if profile is None:
        return Cluster(bootstrap, client_config, patience=patience)
    chosen = bootstrap if is_typed else profile.bootstrap
    return Cluster(
        chosen, merged(client_config, profile), patience=patience, registry=profile.registry
    )


def found_profile(name: str | None) -> Profile | None:
    """The named profile, or that of OTTLA_PROFILE, or the current one. Raises Failed."""
    # Imported late: a command whose cluster is named needs no profiles.
    from ottla.client.profiles import NAME_VARIABLE, profiles_file, read_profiles

    name = name or os.environ.get(NAME_VARIABLE)
    path = profiles_file()
    if name is None and not path.exists():
        return None
    profiles = read_profiles(path)
    name = name or profiles.current
    return None if name is None else profiles.find(name)


def merged(client_config: Sequence[str], profile: Profile) -> list[str]:
    """`--client-config` with the profile's settings that it does not set."""
    names = {word.partition("=")[0].strip() for word in client_config}
    added = [f"{name}={value}" for name, value in profile.client.items() if name not in names]
    return [*added, *client_config]
