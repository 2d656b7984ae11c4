"""The brokers under test: one or several started here, or others at given addresses."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from conformance.replicas import Replicas, assigned
from ottla.testing import BrokerProcess, Cluster, KitError
from ottla.testing.errors import last_lines

# The settings that the suites expect. Two of librdkafka's tests (0102, 0118) assume that consumers
# which subscribe one after the other share the group's first generation. Without an initial
# rebalance delay that is a race, which Apache Kafka loses as well.
SETTINGS: Mapping[str, str] = {
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "500",
}
REPLICAS = 3
TRACEBACK = "Traceback (most recent call last)"
MAX_OF_A_LOG = 2000


def replication_factor(brokers: int) -> int:
    """The default replication factor with this many brokers."""
    return min(brokers, REPLICAS)


def settings(brokers: int) -> dict[str, str]:
    """Each broker's settings. With several, every topic is replicated and one broker may fail."""
    if brokers == 1:
        return dict(SETTINGS)
    replicas = replication_factor(brokers)
    return {
        **SETTINGS,
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(replicas - 1),
    }


def own_bug_in(log: str) -> str:
    """The first traceback in a broker's log; empty without one."""
    _, found, rest = log.partition(TRACEBACK)
    return found + rest[:MAX_OF_A_LOG]


class Target:
    """The brokers' addresses, and their data folders where these are known. A context manager."""

    def __init__(self, bootstrap: str | None, data: Sequence[Path] = (), brokers: int = 1) -> None:
        """`bootstrap`: all brokers of a running cluster, `HOST:PORT,...`; `data`: their folders,
        read after they have stopped. `brokers`: otherwise, how many to start here, with ZooKeeper
        if more than one."""
        self._count = brokers
        self._own = bootstrap is None
        self._brokers: dict[str, BrokerProcess] = {}
        """Brokers started here, by the name of their log file."""
        self._cluster: Cluster | None = None
        self._ending = ExitStack()
        self._stopped = False
        self.bootstrap = bootstrap or ""
        self.folders = tuple(data)
        self.replicas: Replicas | None = None
        """The replicas of a cluster started here, once it has stopped."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """`HOST:PORT` of each broker."""
        return tuple(self.bootstrap.split(","))

    def __enter__(self) -> "Target":
        if self._own:
            with ExitStack() as ending:
                self._start(ending)
                self._ending = ending.pop_all()
        return self

    def _start(self, ending: ExitStack) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="ottla-", ignore_cleanup_errors=True)
        folder = Path(ending.enter_context(scratch))
        given = settings(self._count)
        if self._count == 1:
            words = [word for name, value in given.items() for word in ("-c", f"{name}={value}")]
            broker = BrokerProcess(folder / "data", words)
            ending.callback(broker.end)
            self._brokers["broker.log"] = broker.start()
            self.bootstrap = broker.bootstrap
        else:
            self._cluster = Cluster(self._count, given, data=folder, proxies=False)
            ending.enter_context(self._cluster)
            for number, broker in self._cluster.brokers.items():
                self._brokers[f"broker-{number}.log"] = broker
            self.bootstrap = self._cluster.bootstrap
        self.folders = tuple(each.data for each in self._brokers.values())

    def died(self) -> str | None:
        """The last output of brokers that exited by themselves, if any."""
        if self._stopped:
            return None
        down = {name: each for name, each in self._brokers.items() if not each.running}
        told = (f"{name}:{last_lines(each.said())}" for name, each in down.items())
        return "\n".join(told) or None

    def logs(self) -> dict[str, str]:
        """The log of each broker started here, by file name."""
        return {name: broker.said() for name, broker in self._brokers.items()}

    def own_bugs(self) -> list[str]:
        """The first traceback of each log: no client request may cause one."""
        return [f"{name}: {bug}" for name, text in self.logs().items() if (bug := own_bug_in(text))]

    def stop(self) -> None:
        """Stop the brokers started here cleanly; keep their data folders until the `with` ends.

        Raises KitError if a replica does not catch up, or a broker exits with an error.
        """
        if self._cluster is not None:
            self._cluster.wait_in_sync()
            self.replicas = assigned(self._cluster)
        self._stopped = True
        for name, broker in self._brokers.items():
            if (code := broker.stop()) != 0:
                raise KitError(f"{name}: it ended with {code}:{last_lines(broker.said())}")

    def __exit__(self, *_: object) -> None:
        self._stopped = True
        self._ending.close()
