"""`ottla cluster`: start a cluster for development, describe one, and change its brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ottla.cli import cluster_brokers
from ottla.cli.client import connect, pairs
from ottla.cli.cluster_documents import cluster_document, show_cluster
from ottla.cli.cluster_drain import drain_broker, show_drained
from ottla.cli.cluster_elect import elect
from ottla.cli.cluster_log_dirs import describe_log_dirs
from ottla.cli.cluster_reassign import reassign_replicas
from ottla.cli.cluster_throttle import throttle
from ottla.cli.complete import complete_broker, complete_broker_setting
from ottla.cli.screen import show_json
from ottla.cli.typer_options import DEFAULT_BOOTSTRAP, AsJson, Bootstrap, ClientConfig, DryRun

commands = typer.Typer(help="Start, describe and change a cluster.")

Brokers = Annotated[
    int | None, typer.Option("--brokers", min=1, metavar="N", help="Number of brokers. Default: 3.")
]
ZooKeeper = Annotated[
    str | None,
    typer.Option(
        "--zookeeper",
        metavar="HOST:PORT",
        help="Use this ensemble: HOST:PORT,HOST:PORT/PATH. Default: start one.",
    ),
]
Data = Annotated[
    Path,
    typer.Option("--data", metavar="DIR", help="The folder for all data. Created if missing."),
]
FirstPort = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=1,
        max=65535,
        metavar="FIRST",
        help="The first broker's port; the others get the next ports. Default: 9092.",
    ),
]
Racks = Annotated[
    str | None,
    typer.Option(
        "--racks",
        metavar="A,B,C",
        help="One rack per broker, in order. Replicas are spread over racks.",
    ),
]
BrokerConfig = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="NAME=VALUE",
        help="A setting for all brokers. Repeatable.",
        autocompletion=complete_broker_setting,
    ),
]
BrokerNumber = Annotated[
    int,
    typer.Argument(
        metavar="BROKER", min=0, help="The broker's id.", autocompletion=complete_broker
    ),
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", min=1, metavar="SECONDS", help="How long to wait until it is done."),
]


@commands.command()
def start(
    brokers: Brokers = None,
    zookeeper: ZooKeeper = None,
    data: Data = Path("ottla-cluster"),
    port: FirstPort = None,
    racks: Racks = None,
    config: BrokerConfig = None,
) -> None:
    """Run a cluster on this machine until Ctrl-C, for development.

    Starts its own ZooKeeper unless you name one. A second start uses the same data, ports and
    racks.
    """
    # Imported late: completion and the other commands start no processes.
    from ottla.cli.cluster_start import run_in_terminal

    settings = pairs("--config", config)
    raise typer.Exit(run_in_terminal(brokers, zookeeper, data, port, racks, settings))


@commands.command()
def describe(
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Show brokers, the controller, and partitions that are offline or under-replicated."""
    document = cluster_document(connect(bootstrap, client_config))
    if as_json:
        show_json(document)
    else:
        show_cluster(document)


@commands.command()
def drain(
    broker: BrokerNumber,
    dry_run: DryRun = False,
    timeout: Timeout = 3600.0,
    as_json: AsJson = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    client_config: ClientConfig = None,
) -> None:
    """Move all replicas off a broker, and wait until they have moved."""
    document = drain_broker(
        connect(bootstrap, client_config),
        broker,
        dry_run=dry_run,
        quiet=as_json,
        timeout_s=timeout,
    )
    if as_json:
        show_json(document)
    else:
        show_drained(document)


commands.command("reassign")(reassign_replicas)
commands.command()(elect)
commands.command("log-dirs")(describe_log_dirs)
commands.command()(throttle)

for command in (
    cluster_brokers.add,
    cluster_brokers.stop,
    cluster_brokers.restart,
    cluster_brokers.kill,
    cluster_brokers.pause,
    cluster_brokers.resume,
):
    commands.command()(command)
