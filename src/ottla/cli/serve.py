"""`ottla serve`: its help, its completion, and the response to a mistake.

`main` starts a broker without this file where it understands all options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ottla.cli.command import command
from ottla.cli.complete import complete_broker_setting, of_words
from ottla.cli.serve_options import LOG_LEVELS, ServeOptions, run


@command()
@click.option(
    "--listen", metavar="HOST:PORT", help="The address to listen on. Port 0 picks a free port."
)
@click.option(
    "--advertise", metavar="HOST:PORT", help="The address that clients connect to, if different."
)
@click.option(
    "--data", metavar="DIR", help="The data folder. Created if missing. Default: ./ottla-data"
)
@click.option("--properties", metavar="FILE", help="A Kafka server.properties file.")
@click.option("--id", "node_id", metavar="N", help="The broker's id, unique in the cluster.")
@click.option(
    "--zookeeper",
    metavar="HOST:PORT[,...][/PATH]",
    help="Join the cluster of this ensemble.",
)
@click.option("--rack", metavar="RACK", help="The broker's rack. Replicas are spread over racks.")
@click.option(
    "--config",
    "-c",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=complete_broker_setting,
    help="A setting. Overrides the file. Repeatable.",
)
@click.option(
    "--log-level",
    metavar="LEVEL",
    shell_complete=of_words(lambda: LOG_LEVELS),
    help="What to log, on standard error: debug, info (default), warning or error.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Listen with TLS and passwords (SASL_SSL), check ACLs, make what is missing for that (a "
    "certificate, the user admin), and write a profile for commands.",
)
@click.option("--console", is_flag=True, help="Show the broker in a browser, too (ottla console).")
@click.option(
    "--quiet", "-q", is_flag=True, help="Print no ready line, and log only from warning on."
)
def serve(config: Sequence[str], **options: Any) -> None:
    """Run a broker until Ctrl-C or SIGTERM.

    Settings have Kafka's names and, with a few documented exceptions, Kafka's defaults.
    """
    raise click.exceptions.Exit(run(ServeOptions(config=list(config), **options)))
