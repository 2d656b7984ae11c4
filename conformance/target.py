"""The brokers under test: one or several of our own, started here, or any at given addresses."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from conformance.replicas import Replicas, assigned
from ottla.testing import BrokerProcess, Cluster, KitError
from ottla.testing.errors import last_lines

# What the suites expect of a broker. Two of librdkafka's tests (0102, 0118) take for granted that
# consumers which subscribe one after the other are in a group's first generation together; without
# a wait for that they are a race, which Apache Kafka loses as well.
SETTINGS: Mapping[str, str] = {
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "500",
}
REPLICAS = 3
TRACEBACK = "Traceback (most recent call last)"
MAX_OF_A_LOG = 2000


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
        self._count = brokers
        self._own = bootstrap is None
        self._brokers: dict[str, BrokerProcess] = {}
        """Our own, by the name of the file that their log is kept in."""
        self._cluster: Cluster | None = None
        self._ending = ExitStack()
        self._stopped = False
        self.bootstrap = bootstrap or ""
        self.folders = tuple(data)
        self.replicas: Replicas | None = None
        """Who holds what, once a cluster of our own has stopped."""

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
        """The last words of our brokers that ended unasked, if there are any."""
        if self._stopped:
            return None
        down = {name: each for name, each in self._brokers.items() if not each.running}
        told = (f"{name}:{last_lines(each.said())}" for name, each in down.items())
        return "\n".join(told) or None

    def logs(self) -> dict[str, str]:
        """What each of our brokers has written, by file name; empty for those of others."""
        return {name: broker.said() for name, broker in self._brokers.items()}

    def own_bugs(self) -> list[str]:
        """The tracebacks in our brokers' logs, the first of each: there is to be none, whatever a
        client sends."""
        return [
            f"{name}: {TRACEBACK}{text.partition(TRACEBACK)[2][:MAX_OF_A_LOG]}"
            for name, text in self.logs().items()
            if TRACEBACK in text
        ]

    def stop(self) -> None:
        """Stop our brokers, cleanly, and keep their data folders until the `with` ends.

        Raises KitError where a replica of a cluster does not come into sync, or a broker does not
        end well.
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
