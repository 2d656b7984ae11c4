"""`ottla cluster kill`, `stop`, `restart`, `pause`, `resume` and `add`: the brokers of a running
`ottla cluster start`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import click
import typer

from ottla.cli.cluster_failures import cluster_failures
from ottla.cli.screen import say, show_json
from ottla.cli.typer_options import AsJson
from ottla.devcluster.requests import Request, ask

DEFAULT_DATA: Final = Path("ottla-cluster")
SENTENCES: Final = {
    "kill": "Killed broker {broker} (SIGKILL).",
    "stop": "Stopped broker {broker}.",
    "restart": "Broker {broker} is ready on {address}.",
    "pause": "Paused broker {broker} (SIGSTOP): it accepts connections, but does not respond.",
    "resume": "Broker {broker} continues.",
    "add": "Broker {broker} is ready on {address}.",
}

RunningData = Annotated[
    Path,
    typer.Option("--data", metavar="DIR", help="The folder of the running `cluster start`."),
]


def complete_own_broker(context: click.Context, incomplete: str) -> list[str]:
    """Ids of the cluster in the folder that begin with what was typed."""
    from ottla.devcluster.errors import DevClusterError
    from ottla.devcluster.layout import read_layout

    try:
        layout = read_layout(Path(context.params.get("data") or DEFAULT_DATA))
    except DevClusterError:
        return []
    numbers = map(str, range(1, layout.brokers + 1)) if layout is not None else ()
    return [number for number in numbers if number.startswith(incomplete)]


OwnBroker = Annotated[
    int,
    typer.Argument(
        metavar="BROKER", min=1, help="The broker's id.", autocompletion=complete_own_broker
    ),
]
NewRack = Annotated[
    str | None,
    typer.Option("--rack", metavar="RACK", help="The new broker's rack, if the others have one."),
]


def carry_out(command: str, data: Path, as_json: bool, **what: Any) -> None:
    """Ask the running `cluster start`, and print its answer."""
    with cluster_failures():
        document = ask(data, Request(command, **what))
    if as_json:
        show_json(document)
    else:
        say(SENTENCES[command].format(**document))


def kill(broker: OwnBroker, data: RunningData = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Kill a broker, without a shutdown (SIGKILL)."""
    carry_out("kill", data, as_json, broker=broker)


def stop(broker: OwnBroker, data: RunningData = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Stop a broker after it has handed over its leaderships (SIGTERM)."""
    carry_out("stop", data, as_json, broker=broker)


def restart(broker: OwnBroker, data: RunningData = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Stop a broker if it runs, and start it with its data, ports and settings."""
    carry_out("restart", data, as_json, broker=broker)


def pause(broker: OwnBroker, data: RunningData = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Suspend a broker (SIGSTOP): its connections stay open, but it does not respond."""
    carry_out("pause", data, as_json, broker=broker)


def resume(broker: OwnBroker, data: RunningData = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Continue a suspended broker (SIGCONT)."""
    carry_out("resume", data, as_json, broker=broker)


def add(rack: NewRack = None, data: RunningData = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Start one more broker. It has no replicas until topics are created or moved."""
    carry_out("add", data, as_json, rack=rack)
