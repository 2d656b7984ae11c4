"""The brokers under test: one or several of our own, started here, or any at given addresses."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from bench.child import Child, ChildDiedError, free_port

from conformance.replicas import Replicas, assigned
from ottla.testing import Cluster

# What the suites expect of a broker. Two of librdkafka's tests (0102, 0118) take for granted that
# consumers which subscribe one after the other are in a group's first generation together; without
# a wait for that they are a race, which Apache Kafka loses as well.
SETTINGS: Mapping[str, str] = {
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "500",
}
START_WAIT_MS = 30_000
REPLICAS = 3
TRACEBACK = "Traceback (most recent call last)"
MOST_OF_A_LOG = 2000


def replication_factor(brokers: int) -> int:
    """Of topics that say nothing of it, on that many brokers."""
    return min(brokers, REPLICAS)


def settings(brokers: int) -> dict[str, str]:
    """Of each broker. With several every topic is replicated, and one broker may be away."""
    if brokers == 1:
        return dict(SETTINGS)
    replicas = replication_factor(brokers)
    return {
        **SETTINGS,
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(replicas - 1),
    }


class Target:
    """The brokers' addresses, and their data folders where these are known. A context manager."""

    def __init__(self, bootstrap: str | None, data: Sequence[Path] = (), brokers: int = 1) -> None:
        """`bootstrap`: brokers of somebody else, all of them, `HOST:PORT,...`; `data`: their
        folders, once they have stopped. `brokers`: how many of our own to start otherwise, with a
        ZooKeeper if more than one."""
        self._brokers = brokers
        self._cluster: Cluster | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._child: Child | None = None
        self._own = bootstrap is None
        self._stopped = False
        self.bootstrap = bootstrap or f"127.0.0.1:{free_port()}"
        self.folders = tuple(data)
        self.replicas: Replicas | None = None
        """Who holds what, once a cluster of our own has stopped."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """`HOST:PORT` of each broker."""
        return tuple(self.bootstrap.split(","))

    def __enter__(self) -> "Target":
        if self._own:
            self._scratch = tempfile.TemporaryDirectory(prefix="ottla-", ignore_cleanup_errors=True)
            if self._brokers > 1:
                self._start_cluster(Path(self._scratch.name))
            else:
                self._start(Path(self._scratch.name))
        return self

    def _start_cluster(self, folder: Path) -> None:
        given = settings(self._brokers)
        self._cluster = Cluster(self._brokers, given, data=folder, proxies=False)
        self._cluster.open()
        self.bootstrap = self._cluster.bootstrap
        self.folders = tuple(each.data for each in self._cluster.brokers.values())

    def _start(self, folder: Path) -> None:
        self.folders = (folder / "data",)
        command = [str(Path(sys.executable).with_name("ottla")), "serve"]
        command += ["--listen", self.bootstrap, "--data", str(self.folders[0])]
        for name, value in settings(1).items():
            command += ["--config", f"{name}={value}"]
        self._child = Child(command, folder / "broker.log")
        port = int(self.bootstrap.rpartition(":")[2])
        self._child.wait_for_port(port, START_WAIT_MS)

    def died(self) -> str | None:
        """The last words of our brokers that ended unasked, if there are any."""
        if self._stopped:
            return None
        if self._cluster is not None:
            down = [each for each in self._cluster.brokers.values() if not each.running]
            return "\n".join(each.said() for each in down)[-2000:] or None
        if self._child is None or self._child.process.poll() is None:
            return None
        return self._child.last_words()

    def logs(self) -> dict[str, str]:
        """What each of our brokers has written, by file name; empty for those of others."""
        if self._cluster is not None:
            brokers = self._cluster.brokers.items()
            return {f"broker-{number}.log": broker.said() for number, broker in brokers}
        return {"broker.log": self._child.log.read_text(errors="replace")} if self._child else {}

    def own_bugs(self) -> list[str]:
        """The tracebacks in our brokers' logs, the first of each: there is to be none, whatever a
        client sends."""
        return [
            f"{name}: {TRACEBACK}{text.partition(TRACEBACK)[2][:MOST_OF_A_LOG]}"
            for name, text in self.logs().items()
            if TRACEBACK in text
        ]

    def stop(self) -> None:
        """Stop our brokers, cleanly, and keep their data folders until the `with` ends.

        Raises KitError where a replica of a cluster does not come into sync, and it or
        ChildDiedError where a broker does not end well.
        """
        if self._cluster is not None:
            self._cluster.wait_in_sync()
            self.replicas = assigned(self._cluster)
        self._stopped = True
        if self._cluster is not None:
            for number in self._cluster.brokers:
                self._cluster.stop(number)
        if self._child is not None and (code := self._child.stop()) != 0:
            raise ChildDiedError(f"the broker ended with {code}:\n{self._child.last_words()}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped = True
        if self._cluster is not None:
            self._cluster.close()
        if self._child is not None:
            self._child.stop()
        if self._scratch is not None:
            self._scratch.cleanup()
