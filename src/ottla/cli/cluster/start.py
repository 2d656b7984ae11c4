"""`ottla cluster start`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ottla.cli.cluster.running import DEFAULT_DATA
from ottla.cli.command import command
from ottla.cli.complete import complete_broker_setting
from ottla.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED
from ottla.cli.name_values import pairs
from ottla.cli.value_types import WholeNumber


@command()
@click.option("--brokers", type=WholeNumber(1), help="Number of brokers. Default: 3.")
@click.option(
    "--zookeeper",
    metavar="HOST:PORT",
    help="Use this ensemble: HOST:PORT,HOST:PORT/PATH. Default: start one.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=DEFAULT_DATA,
    metavar="DIR",
    help="The folder for all data. Created if missing.",
)
@click.option(
    "--port",
    type=WholeNumber(1, 65535),
    metavar="FIRST",
    help="The first broker's port; the others get the next ports. Default: 9092.",
)
@click.option(
    "--racks",
    metavar="A,B,C",
    help="One rack per broker, in order. Replicas are spread over racks.",
)
@click.option(
    "--config",
    "-c",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=complete_broker_setting,
    help="A setting for all brokers. Repeatable.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="TLS and passwords (SASL_SSL) for clients and brokers, ACLs, a user and a profile for "
    "commands. Later starts of the folder are secure too.",
)
def start(config: Sequence[str], **options: Any) -> int:
    """Run a cluster on this machine until Ctrl-C, for development.

    Starts its own ZooKeeper unless you name one. A second start uses the same data, ports and
    racks.
    """
    # Imported late: completion and the other commands start no processes.
    from ottla.cli.cluster.terminal import Printed, interrupted_by_signals
    from ottla.devcluster.supervisor import run_cluster

    settings = pairs("--config", config)
    with interrupted_by_signals():
        stopped = run_cluster(**options, config=settings, reporter=Printed())
    return EXIT_INTERRUPTED if stopped else EXIT_FAILED
