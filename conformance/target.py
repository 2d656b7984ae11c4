"""The brokers under test: one or several started here, or others at given addresses."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from conformance.replicas import Replicas, assigned
from ottla.testing import BrokerProcess, Cluster, KitError
from ottla.testing.errors import last_lines
from ottla.testing.ports import HOST, free_ports
from ottla.testing.security import SecuredClients, Security

# The settings that the suites expect. Two of librdkafka's tests (0102, 0118) assume that consumers
# which subscribe one after the other share the group's first generation. Without an initial
# rebalance delay that is a race, which Apache Kafka loses as well. Of share groups 0173 wants locks
# of 3 s, which librdkafka's own script for Apache Kafka allows, too.
SETTINGS: Mapping[str, str] = {
    "num.partitions": "4",
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
}
# Sessions that end soon, so that long tests authenticate again (KIP-368). Not sooner: while a
# JoinGroup waits, librdkafka sends nothing else, nor authenticates again, and 0093 fails.
SECURED_SETTINGS: Mapping[str, str] = {
    "allow.everyone.if.no.acl.found": "true",
    "connections.max.reauth.ms": "20000",
}
USER = "tester"
"""As which the suites connect; it is no super user."""
SECURITY = Security(users={USER: "tester's word"})
PROTOCOL = "SASL_SSL"
REPLICAS = 3
TRACEBACK = "Traceback (most recent call last)"
MAX_OF_A_LOG = 2000


def replication_factor(brokers: int) -> int:
    """The default replication factor with this many brokers."""
    return min(brokers, REPLICAS)


def settings(brokers: int, *, is_secured: bool = False) -> dict[str, str]:
    """Each broker's settings. With several, every topic is replicated and one broker may fail."""
    given = {**SETTINGS, **(SECURED_SETTINGS if is_secured else {})}
    if brokers == 1:
        return given
    replicas = replication_factor(brokers)
    return {
        **given,
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(replicas - 1),
    }


def _without_address(client: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in client.items() if name != "bootstrap.servers"}


def own_bug_in(log: str) -> str:
    """The first traceback in a broker's log; empty without one."""
    _, found, rest = log.partition(TRACEBACK)
    return found + rest[:MAX_OF_A_LOG]


class Target:
    """The brokers' addresses, and their data folders where these are known. A context manager."""

    def __init__(
        self,
        bootstrap: str | None,
        data: Sequence[Path] = (),
        brokers: int = 1,
        *,
        is_secured: bool = False,
    ) -> None:
        """`bootstrap`: all brokers of a running cluster, `HOST:PORT,...`; `data`: their folders,
        read after they have stopped. `brokers`: otherwise, how many to start here, with ZooKeeper
        if more than one; `is_secured`: with SASL_SSL and an authorizer."""
        self._count = brokers
        self.is_secured = is_secured
        self.client: Mapping[str, str] = {}
        """librdkafka's settings with which the suites connect, without the address."""
        self.admin: Mapping[str, str] = {}
        """The same for a super user."""
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
        given = settings(self._count, is_secured=self.is_secured)
        if self._count == 1:
            self._start_one(folder, given, ending)
        else:
            security = SECURITY if self.is_secured else None
            cluster = Cluster(self._count, given, data=folder, proxies=False, security=security)
            self._cluster = ending.enter_context(cluster)
            if self.is_secured:
                self.client, self.admin = (
                    _without_address(cluster.client(USER)),
                    cluster.kit_settings,
                )
            for number, broker in self._cluster.brokers.items():
                self._brokers[f"broker-{number}.log"] = broker
            self.bootstrap = self._cluster.bootstrap
        self.folders = tuple(each.data for each in self._brokers.values())

    def _start_one(self, folder: Path, given: Mapping[str, str], ending: ExitStack) -> None:
        words = [word for name, value in given.items() for word in ("-c", f"{name}={value}")]
        broker = BrokerProcess(folder / "data", words)
        clients = None
        if self.is_secured:
            clients = SecuredClients(SECURITY, folder / "secure")
            broker.bootstrap = f"{HOST}:{free_ports(1)[0]}"
            broker.options[:0] = clients.options({PROTOCOL: broker.bootstrap})
        ending.callback(broker.end)
        self._brokers["broker.log"] = broker.start()
        self.bootstrap = broker.bootstrap
        if clients is not None:
            clients.begin(self.bootstrap)
            self.client, self.admin = clients.settings(USER), clients.kit_settings()

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
