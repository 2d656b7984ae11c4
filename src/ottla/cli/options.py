"""Arguments and options that several commands share; those of the cluster are in `context`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import click

from ottla.cli.complete import (
    complete_group,
    complete_topic,
    complete_topic_setting,
    complete_unset,
)
from ottla.cli.context import complete_profile
from ottla.cli.value_types import MAX_INT16, MAX_INT32, Seconds, WholeNumber

Parameter: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Gives a function an option or an argument."""

AS_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
YES: Final = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
DRY_RUN: Final = click.option(
    "--dry-run", is_flag=True, help="Show what would be done, but change nothing."
)
FILTER: Final = click.option(
    "--filter", "filter_", metavar="REGEX", help="Only names that have a match (RE2)."
)


def profile_argument(**more: Any) -> Parameter:
    """`name`: of a profile."""
    options = {
        "metavar": "NAME",
        "help": "The profile's name.",
        "shell_complete": complete_profile,
    }
    return click.argument("name", **{**options, **more})


def topic_argument(**more: Any) -> Parameter:
    """`topic`: one name."""
    options = {"metavar": "TOPIC", "help": "The topic's name.", "shell_complete": complete_topic}
    return click.argument("topic", **{**options, **more})


def topics_argument(*, required: bool = True) -> Parameter:
    """`topics`: names, or if not required perhaps none, which means all."""
    return click.argument(
        "topics",
        metavar="TOPIC..." if required else "[TOPIC]...",
        nargs=-1,
        required=required,
        shell_complete=complete_topic,
        help="Topic names." if required else "Topic names. Default: all.",
    )


def group_argument() -> Parameter:
    """`group`: one name."""
    return click.argument(
        "group", metavar="GROUP", shell_complete=complete_group, help="The group's name."
    )


def groups_argument(*, required: bool = True) -> Parameter:
    """`groups`: names, or if not required perhaps none, which means all."""
    return click.argument(
        "groups",
        metavar="GROUP..." if required else "[GROUP]...",
        nargs=-1,
        required=required,
        shell_complete=complete_group,
        help="Group names." if required else "Group names. Default: all.",
    )


def every_option(default_s: float, help_: str) -> Parameter:
    """`every_s`: of what is asked or shown again and again."""
    return click.option("--every", "every_s", type=Seconds(0.2), default=default_s, help=help_)


PARTITIONS: Final = click.option(
    "--partitions", "-p", type=WholeNumber(1, MAX_INT32), help="Number of partitions."
)
REPLICATION_FACTOR: Final = click.option(
    "--replication-factor", "-r", type=WholeNumber(1, MAX_INT16), help="Number of replicas."
)
TOPIC_CONFIG: Final = click.option(
    "--config",
    "-c",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=complete_topic_setting,
    help="A topic setting, such as retention.ms=3600000. Repeatable.",
)
UNSET_CONFIG: Final = click.option(
    "--unset",
    metavar="NAME",
    multiple=True,
    shell_complete=complete_unset,
    help="Reset a setting to its default.",
)
OF_PARTITION: Final = click.option(
    "--partition",
    "-p",
    type=WholeNumber(0, MAX_INT32),
    multiple=True,
    help="Only this one. Repeatable.",
)
GROUP_TOPICS: Final = click.option(
    "--topic",
    "-t",
    metavar="TOPIC[:0,1]",
    multiple=True,
    shell_complete=complete_topic,
    help="Only this topic (and these partitions). Repeatable.",
)
INTERNAL: Final = click.option("--internal", is_flag=True, help="Include internal topics.")
