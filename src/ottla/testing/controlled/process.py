"""A broker for a test, in a process of its own.

Takes the options of `ottla serve` that the kit gives, and prints the same line when it is ready.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from ottla.api.table import HANDLERS
from ottla.config.properties import read_properties
from ottla.node.node import Node
from ottla.node.serve import serve
from ottla.testing.controlled.control_server import control_server
from ottla.testing.controlled.fault_script import FaultScript
from ottla.testing.controlled.faulty_handlers import FaultyHandlers
from ottla.testing.controlled.operations import Operations
from ottla.testing.controlled.virtual_time import AdvancingClock, AdvancingLoop
from ottla.testing.time_ahead import TimeAhead

NEVER_MS = str(10 * 365 * 24 * 3600 * 1000)


def main(words: Sequence[str]) -> int:
    """Runs the broker until SIGTERM; returns the exit code of `serve`."""
    given = _parse(words)
    ahead_ms = TimeAhead.of(given.control).read_ms()
    script = FaultScript()
    faulty = FaultyHandlers(HANDLERS, script)

    @asynccontextmanager
    async def controlled(node: Node) -> AsyncIterator[None]:
        async with control_server(given.control, Operations(node, script)):
            try:
                yield
            finally:
                faulty.close()

    return serve(
        _properties(given),
        faulty.handlers,
        clock=AdvancingClock(),
        new_loop=partial(AdvancingLoop, ahead_ms),
        beside=controlled,
    )


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ottla.testing.controlled")
    parser.add_argument("--control", type=Path, required=True)
    parser.add_argument("--listen")
    parser.add_argument("--data")
    parser.add_argument("--id")
    parser.add_argument("--zookeeper")
    parser.add_argument("--rack")
    parser.add_argument("--properties")
    parser.add_argument("-c", "--config", action="append", default=[])
    return parser.parse_args(words)


def _properties(given: argparse.Namespace) -> dict[str, str]:
    properties = {
        # A client's time does not advance, so its connections are not idle.
        "connections.max.idle.ms": NEVER_MS,
        # Kafka's default waits 3 s for more members, at the first join of each group.
        "group.initial.rebalance.delay.ms": "0",
    }
    if given.properties is not None:
        properties |= read_properties(given.properties)
    properties |= dict(pair.split("=", 1) for pair in given.config)
    options = {
        "listeners": given.listen and f"PLAINTEXT://{given.listen}",
        "log.dirs": given.data,
        "node.id": given.id,
        "zookeeper.connect": given.zookeeper,
        "broker.rack": given.rack,
    }
    return properties | {name: value for name, value in options.items() if value is not None}
