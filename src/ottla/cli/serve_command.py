"""`ottla serve` for typer: its help, its completion, and the response to a mistake."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.complete import complete_broker_setting
from ottla.cli.serve import LOG_LEVELS, ServeOptions, run


def complete_level(incomplete: str) -> list[str]:
    return [level for level in LOG_LEVELS if level.startswith(incomplete)]


Listen = Annotated[
    str | None,
    typer.Option(
        "--listen", metavar="HOST:PORT", help="The address to listen on. Port 0 picks a free port."
    ),
]
Advertise = Annotated[
    str | None,
    typer.Option(
        "--advertise",
        metavar="HOST:PORT",
        help="The address that clients connect to, if different.",
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The data folder. Created if missing. Default: ./ottla-data",
    ),
]
Properties = Annotated[
    str | None,
    typer.Option("--properties", metavar="FILE", help="A Kafka server.properties file."),
]
NodeId = Annotated[
    str | None,
    typer.Option("--id", metavar="N", help="The broker's id, unique in the cluster."),
]
ZooKeeper = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT[,...][/PATH]",
        help="Join the cluster of this ensemble.",
    ),
]
Rack = Annotated[
    str | None,
    typer.Option(
        "--rack", metavar="RACK", help="The broker's rack. Replicas are spread over racks."
    ),
]
Config = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="NAME=VALUE",
        help="A setting. Overrides the file. Repeatable.",
        autocompletion=complete_broker_setting,
    ),
]

LogLevel = Annotated[
    str | None,
    typer.Option(
        "--log-level",
        metavar="LEVEL",
        help="What to log, on standard error: debug, info (default), warning or error.",
        autocompletion=complete_level,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print no ready line, and log only from warning on."),
]


def serve(
    listen: Listen = None,
    advertise: Advertise = None,
    data: Data = None,
    properties: Properties = None,
    node_id: NodeId = None,
    zookeeper: ZooKeeper = None,
    rack: Rack = None,
    config: Config = None,
    log_level: LogLevel = None,
    quiet: Quiet = False,
) -> None:
    """Run a broker until Ctrl-C or SIGTERM.

    Settings have Kafka's names and, with a few documented exceptions, Kafka's defaults.
    """
    options = ServeOptions(
        listen,
        advertise,
        data,
        properties,
        node_id,
        zookeeper,
        rack,
        list(config or ()),
        log_level,
        quiet,
    )
    raise typer.Exit(run(options))
