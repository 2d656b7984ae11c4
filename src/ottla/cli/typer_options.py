"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from ottla.cli.complete import (
    complete_group,
    complete_topic,
    complete_topic_setting,
    complete_unset,
)

DEFAULT_BOOTSTRAP: Final = "localhost:9092"

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        envvar="OTTLA_BOOTSTRAP",
        help="A broker to connect to first, or several separated by commas.",
    ),
]
ClientConfig = Annotated[
    list[str] | None,
    typer.Option(
        "--client-config",
        metavar="NAME=VALUE",
        help="Any librdkafka setting. Repeatable.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, but change nothing.")
]

TopicName = Annotated[
    str, typer.Argument(metavar="TOPIC", help="The topic's name.", autocompletion=complete_topic)
]
TopicNames = Annotated[
    list[str],
    typer.Argument(metavar="TOPIC", help="Topic names.", autocompletion=complete_topic),
]
SomeTopicNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOPIC", help="Topic names. Default: all.", autocompletion=complete_topic
    ),
]
Partitions = Annotated[
    int | None,
    typer.Option("--partitions", "-p", min=1, metavar="N", help="Number of partitions."),
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option("--replication-factor", "-r", min=1, metavar="N", help="Number of replicas."),
]
TopicConfig = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="NAME=VALUE",
        help="A topic setting, such as retention.ms=3600000. Repeatable.",
        autocompletion=complete_topic_setting,
    ),
]
UnsetConfig = Annotated[
    list[str] | None,
    typer.Option(
        "--unset",
        metavar="NAME",
        help="Reset a setting to its default.",
        autocompletion=complete_unset,
    ),
]
Internal = Annotated[bool, typer.Option("--internal", help="Include internal topics.")]

GroupName = Annotated[
    str, typer.Argument(metavar="GROUP", help="The group's name.", autocompletion=complete_group)
]
GroupNames = Annotated[
    list[str],
    typer.Argument(metavar="GROUP", help="Group names.", autocompletion=complete_group),
]
SomeGroupNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="GROUP", help="Group names. Default: all.", autocompletion=complete_group
    ),
]
OfPartition = Annotated[
    list[int] | None,
    typer.Option("--partition", "-p", min=0, metavar="N", help="Only this one. Repeatable."),
]
GroupTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC[:0,1]",
        help="Only this topic (and these partitions). Repeatable.",
        autocompletion=complete_topic,
    ),
]
