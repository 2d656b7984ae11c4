"""What the commands for the brokers of a running `ottla cluster start` share."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from ottla.cli.rows import emit, row
from ottla.cli.screen import say
from ottla.cli.value_types import WholeNumber
from ottla.devcluster.errors import DevClusterError
from ottla.devcluster.layout import read_layout
from ottla.devcluster.requests import Request, ask

DEFAULT_DATA: Final = Path("ottla-cluster")
SENTENCES: Final = {
    "killed": "Killed broker {0.broker} (SIGKILL).",
    "stopped": "Stopped broker {0.broker}.",
    "paused": "Paused broker {0.broker} (SIGSTOP): it accepts connections, but does not respond.",
    "running": "Broker {0.broker} continues.",
}


@row
class BrokerState:
    """The state of a broker after the request."""

    broker: int
    state: str

    def show(self) -> None:
        say(SENTENCES[self.state].format(self))


@row
class StartedBroker:
    """A broker that was started."""

    broker: int
    state: str
    address: str

    def show(self) -> None:
        say(f"Broker {self.broker} is ready on {self.address}.")


def complete_own_broker(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Ids of the cluster in the folder that begin with what was typed."""
    try:
        layout = read_layout(Path(context.params.get("data") or DEFAULT_DATA))
    except DevClusterError:
        return []
    numbers = map(str, range(1, layout.brokers + 1)) if layout is not None else ()
    return [number for number in numbers if number.startswith(incomplete)]


OWN_BROKER: Final = click.argument(
    "broker",
    type=WholeNumber(1),
    metavar="BROKER",
    shell_complete=complete_own_broker,
    help="The broker's id.",
)
RUNNING_DATA: Final = click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=DEFAULT_DATA,
    metavar="DIR",
    help="The folder of the running `cluster start`.",
)


def carry_out(command: str, data: Path, *, as_json: bool, **what: Any) -> None:
    """Ask the running `cluster start`, and print its answer. Raises Failed."""
    answer = ask(data, Request(command, **what))
    emit((StartedBroker if "address" in answer else BrokerState)(**answer), as_json=as_json)
