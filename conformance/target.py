"""The brokers under test: one or several of our own, started here, or any at a given address."""

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from bench.child import Child, free_port

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
# With several brokers every topic is replicated, and one broker may be away.
CLUSTER_SETTINGS: Mapping[str, str] = {
    **SETTINGS,
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


class Target:
    """A broker's address, and its data folder where that is known. As a context manager."""

    def __init__(self, bootstrap: str | None, data: Path | None, brokers: int = 1) -> None:
        """`brokers`: how many of our own to start, with a ZooKeeper if more than one."""
        self._brokers = brokers
        self._cluster: Cluster | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._child: Child | None = None
        self._own = bootstrap is None
        self.bootstrap = bootstrap or f"127.0.0.1:{free_port()}"
        self.data = data

    @property
    def host(self) -> str:
        """Of the first broker."""
        return self.bootstrap.partition(",")[0].rpartition(":")[0]

    @property
    def port(self) -> int:
        """Of the first broker."""
        return int(self.bootstrap.partition(",")[0].rpartition(":")[2])

    def __enter__(self) -> "Target":
        if self._own:
            self._scratch = tempfile.TemporaryDirectory(prefix="ottla-", ignore_cleanup_errors=True)
            self.data = Path(self._scratch.name) / "data"
            if self._brokers > 1:
                self._start_cluster(Path(self._scratch.name))
            else:
                self._start()
        return self

    def _start_cluster(self, folder: Path) -> None:
        self._cluster = Cluster(self._brokers, CLUSTER_SETTINGS, data=folder, proxies=False)
        self._cluster.open()
        self.bootstrap = self._cluster.bootstrap
        self.data = self._cluster.brokers[1].data

    def _start(self) -> None:
        assert self._scratch is not None
        command = [str(Path(sys.executable).with_name("ottla")), "serve"]
        command += ["--listen", self.bootstrap, "--data", str(self.data)]
        for name, value in SETTINGS.items():
            command += ["--config", f"{name}={value}"]
        self._child = Child(command, Path(self._scratch.name) / "broker.log")
        self._child.wait_for_port(self.port, START_WAIT_MS)

    def died(self) -> str | None:
        """The broker's last words, if it is ours and has ended."""
        if self._cluster is not None:
            down = [each for each in self._cluster.brokers.values() if not each.running]
            return "\n".join(each.said() for each in down)[-2000:] or None
        if self._child is None or self._child.process.poll() is None:
            return None
        return self._child.last_words()

    def log(self) -> str:
        """What our broker has written; empty for a broker of somebody else."""
        if self._cluster is not None:
            return "\n".join(each.said() for each in self._cluster.brokers.values())
        return self._child.log.read_text(errors="replace") if self._child else ""

    def stop(self) -> None:
        """Stop a broker of ours, cleanly, and keep its data folder until the `with` ends."""
        if self._child is not None:
            self._child.stop()
            self._child = None
        if self._cluster is not None:
            for number, broker in self._cluster.brokers.items():
                if broker.running:
                    self._cluster.stop(number)
            self._cluster.close()
            self._cluster = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._scratch is not None:
            self._scratch.cleanup()
