"""`ottla serve` as typer knows it: its help, its completion, and the answer to a mistake."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.cli.serve import ServeOptions, run

Listen = Annotated[
    str | None,
    typer.Option("--listen", metavar="HOST:PORT", help="Where to listen. Port 0 takes a free one."),
]
Advertise = Annotated[
    str | None,
    typer.Option(
        "--advertise", metavar="HOST:PORT", help="What clients are told to connect to, if other."
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The data folder; made when missing. Default: ./ottla-data",
    ),
]
Properties = Annotated[
    str | None,
    typer.Option("--properties", metavar="FILE", help="Kafka's own server.properties."),
]
NodeId = Annotated[
    str | None,
    typer.Option("--id", metavar="N", help="The broker's number, its own in the cluster."),
]
ZooKeeper = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT[,...][/PATH]",
        help="The ensemble that makes it one of a cluster.",
    ),
]
Rack = Annotated[
    str | None, typer.Option("--rack", metavar="RACK", help="Where it stands; replicas spread.")
]
Config = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="NAME=VALUE",
        help="A setting, stronger than the file's. Again for more.",
    ),
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
) -> None:
    """Run a broker until Ctrl-C or SIGTERM.

    Settings have Kafka's own names and, but for a documented few, its defaults.
    """
    options = ServeOptions(
        listen, advertise, data, properties, node_id, zookeeper, rack, list(config or ())
    )
    raise typer.Exit(run(options))
