"""A running cluster: reports processes that exit, and carries out what other commands ask for."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

from ottla.devcluster.errors import DevClusterError
from ottla.devcluster.layout import Layout, write_layout
from ottla.devcluster.reporter import Reporter
from ottla.devcluster.requests import Request, Requests
from ottla.testing.broker_process import BrokerProcess
from ottla.testing.cluster import Cluster
from ottla.testing.errors import KitError
from ottla.testing.ports import claim

LOOK_PAUSE_S: Final = 0.1


class ClusterWatch:
    """Knows which brokers should run: a broker that a request stopped has not exited by itself."""

    def __init__(
        self, cluster: Cluster, layout: Layout, requests: Requests, reporter: Reporter
    ) -> None:
        self._cluster = cluster
        self._reporter = reporter
        self._layout = layout
        self._requests = requests
        self._expected = set(cluster.brokers)
        self._asked_down: set[int] = set()
        self._zookeeper = True
        self._ports = ExitStack()

    def run(self) -> None:
        """Until Ctrl-C, or until every broker has exited by itself."""
        with self._ports:
            while self._expected or self._asked_down:
                self.look()
                for request_id, request in self._requests.waiting().items():
                    self._requests.answer(request_id, self.answer(request))
                time.sleep(LOOK_PAUSE_S)
        self._reporter.note("No broker is running.")

    def look(self) -> None:
        """Report each process that has exited by itself, once."""
        for number in sorted(self._expected):
            broker = self._cluster.brokers[number]
            if not broker.running:
                self._reporter.note(f"broker {number} exited unexpectedly: {why_ended(broker)}")
                self._expected.discard(number)
        if self._zookeeper and not self._cluster.zookeeper_is_running:
            self._reporter.note(
                "ZooKeeper exited unexpectedly. Brokers continue to serve, but the cluster cannot "
                "change."
            )
            self._zookeeper = False

    def answer(self, request: Request) -> dict[str, Any]:
        """Do what was asked; the answer's document."""
        try:
            document = self._carried_out(request)
        except KitError as error:
            first, *more = str(error).splitlines()
            return {"failed": f"{first.rstrip(':.')}.", "hint": more[-1].strip() if more else None}
        except DevClusterError as error:
            return {"failed": error.message, "hint": error.hint}
        self._reporter.note(f"broker {document['broker']}: {document['state']}, as asked")
        return document

    def _carried_out(self, request: Request) -> dict[str, Any]:
        if request.command == "add":
            return self._add(request.rack)
        number = request.broker
        if number not in self._cluster.brokers:
            numbers = ", ".join(map(str, self._cluster.brokers))
            raise DevClusterError(f"there is no broker {number}; this cluster has {numbers}.")
        assert number is not None
        if request.command == "restart":
            return self._restart(number)
        if not self._cluster.brokers[number].running:
            raise DevClusterError(
                f"broker {number} is not running.", f"To start it: ottla cluster restart {number}"
            )
        if request.command == "pause":
            self._cluster.pause(number)
            return {"broker": number, "state": "paused"}
        if request.command == "resume":
            self._cluster.resume(number)
            return {"broker": number, "state": "running"}
        self._down(number)
        if request.command == "kill":
            self._cluster.kill(number)
            return {"broker": number, "state": "killed"}
        assert request.command == "stop", request.command
        self._stop(number)
        return {"broker": number, "state": "stopped"}

    def _down(self, number: int) -> None:
        self._expected.discard(number)
        self._asked_down.add(number)

    def _stop(self, number: int) -> None:
        # A paused process handles SIGTERM only once it continues.
        self._cluster.resume(number)
        self._cluster.stop(number)

    def _restart(self, number: int) -> dict[str, Any]:
        broker = self._cluster.brokers[number]
        self._down(number)
        if broker.running:
            self._stop(number)
        self._cluster.start(number)
        return self._up(number)

    def _up(self, number: int) -> dict[str, Any]:
        self._asked_down.discard(number)
        self._expected.add(number)
        address = self._cluster.brokers[number].bootstrap
        return {"broker": number, "state": "running", "address": address}

    def _add(self, rack: str | None) -> dict[str, Any]:
        racks = self._layout.racks
        if racks and rack is None:
            raise DevClusterError(
                "every broker of this cluster has a rack.",
                f"Name one: ottla cluster add --rack {racks[0]}",
            )
        if rack is not None and not racks:
            raise DevClusterError("the brokers of this cluster have no racks: leave out --rack.")
        layout = replace(
            self._layout,
            brokers=self._layout.brokers + 1,
            racks=(*racks, rack) if rack is not None else (),
        )
        port = layout.ports[-1]
        holder = claim(port)
        if holder is None:
            raise DevClusterError(f"port {port}, for broker {layout.brokers}, is in use.")
        number = self._cluster.add(port, rack)
        self._ports.enter_context(holder)
        self._layout = layout
        write_layout(self._cluster.data, layout)
        return self._up(number)


def why_ended(broker: BrokerProcess) -> str:
    """The exit status and the end of the log, in one line."""
    assert broker.process is not None
    code = broker.process.returncode
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    lines = broker.said().strip().splitlines()
    said = f", after {lines[-1]!r}" if lines else ""
    return f"{how}{said} (log: {broker.errors})"
