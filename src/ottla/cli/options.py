"""Options that several commands share, each spelt once."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from ottla.cli.complete import complete_group, complete_topic

DEFAULT_BOOTSTRAP: Final = "localhost:9092"

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        envvar="OTTLA_BOOTSTRAP",
        help="A broker to begin with, or several with commas between.",
    ),
]
ClientConfig = Annotated[
    list[str] | None,
    typer.Option(
        "--client-config",
        metavar="NAME=VALUE",
        help="Any setting of librdkafka. Again for more.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; do nothing.")]

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
        metavar="TOPIC", help="Topic names; all when none.", autocompletion=complete_topic
    ),
]
Partitions = Annotated[
    int | None,
    typer.Option("--partitions", "-p", min=1, metavar="N", help="How many partitions."),
]
ReplicationFactor = Annotated[
    int | None,
    typer.Option("--replication-factor", "-r", min=1, metavar="N", help="How many replicas."),
]
TopicConfig = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="NAME=VALUE",
        help="A topic setting, such as retention.ms=3600000. Again for more.",
    ),
]
UnsetConfig = Annotated[
    list[str] | None,
    typer.Option("--unset", metavar="NAME", help="Put a setting back to its default."),
]
Internal = Annotated[bool, typer.Option("--internal", help="Also the broker's own topics.")]

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
        metavar="GROUP", help="Group names; all when none.", autocompletion=complete_group
    ),
]
