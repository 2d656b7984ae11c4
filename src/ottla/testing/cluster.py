"""Several brokers, a ZooKeeper and the network between them, with every fault a test may want."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from ottla.testing.broker_process import BrokerProcess
from ottla.testing.cluster_state import ClusterState
from ottla.testing.errors import KitError, last_lines
from ottla.testing.network import Network
from ottla.testing.ports import HOST, free_ports
from ottla.testing.zookeeper_server import ZooKeeperEnsemble, ZooKeeperServer
from ottla.testing.zookeeper_session import end_session

WAIT_S: Final = 60.0
POLL_S: Final = 0.02
_T = TypeVar("_T")


class Cluster:
    """`with Cluster(brokers=3) as cluster:` or `cluster = Cluster().open()` and `.close()`.

    Brokers have the numbers 1 to `brokers`. `config` holds settings for all of them, `racks` one
    rack each. `zookeeper` is an ensemble that runs already (`HOST:PORT,...[/chroot]`, to be used by
    this cluster alone); otherwise one with `ensemble` members is started. `data` keeps the data; by
    default it lies in a temporary folder and goes with the cluster. With `proxies=False` brokers
    have one listener each and talk directly: faster, but nothing can be cut.

    Every wait is bounded and raises KitError, which shows the end of the log that tells why.
    """

    def __init__(
        self,
        brokers: int = 3,
        config: Mapping[str, object] | None = None,
        zookeeper: str | None = None,
        ensemble: int = 1,
        *,
        racks: Sequence[str] | None = None,
        data: Path | None = None,
        proxies: bool = True,
        ports: Sequence[int] | None = None,
        zookeeper_port: int = 0,
    ) -> None:
        assert brokers > 0, "a cluster has one broker or more"
        assert racks is None or len(racks) == brokers, "one rack for each broker"
        self.brokers: dict[int, BrokerProcess] = {}
        self._count = brokers
        self._config = dict(config or {})
        self._racks = racks
        self._given_zookeeper = zookeeper
        self._members = ensemble
        self._proxies = proxies
        self._ports = ports
        self._zookeeper_port = zookeeper_port
        self._given_data = data
        self._ending = ExitStack()
        self._network: Network | None = None
        self._ensemble: ZooKeeperEnsemble | None = None
        self._state: ClusterState | None = None

    # From nothing to a running cluster, and back.

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> Self:
        """Start all and wait until every broker is ready."""
        try:
            self.prepare()
            for broker_id in self.brokers:
                self.launch(broker_id)
            for broker in self.brokers.values():
                broker.wait_ready(WAIT_S)
        except BaseException:
            self.close()
            raise
        return self

    def prepare(self) -> None:
        """Start ZooKeeper and the network; brokers are ready to be started one by one."""
        self.data = self._given_data or Path(tempfile.mkdtemp(prefix="ottla-cluster-"))
        self.data.mkdir(parents=True, exist_ok=True)
        if self._given_data is None:
            self._ending.callback(shutil.rmtree, self.data, ignore_errors=True)
        if self._given_zookeeper is None:
            self._ensemble = ZooKeeperEnsemble(self.data, self._members, self._zookeeper_port)
            self._ending.callback(self._ensemble.stop)
            self._ensemble.start()
        self._state = ClusterState(self.zookeeper)
        self._ending.callback(self._state.close)
        if self._proxies:
            self._network = Network()
            self._ending.callback(self._network.close)
        ports = list(self._ports or free_ports(self._count))
        for number, port in enumerate(ports, 1):
            self.brokers[number] = self._make_broker(number, port)

    def _make_broker(self, number: int, port: int) -> BrokerProcess:
        options = ["--id", str(number)]
        zookeeper = self.zookeeper
        if self._network is not None:
            inner = free_ports(1)[0]
            advertised = self._network.add_broker(number, inner)
            zookeeper = self._network.add_way_to_zookeeper(number, self._zookeeper_hosts)
            zookeeper += self._chroot
            for setting in (
                f"listeners=PLAINTEXT://{HOST}:{port},REPLICATION://{HOST}:{inner}",
                f"advertised.listeners=PLAINTEXT://{HOST}:{port},REPLICATION://{HOST}:{advertised}",
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,REPLICATION:PLAINTEXT",
                "inter.broker.listener.name=REPLICATION",
            ):
                options += ["-c", setting]
        options += ["--zookeeper", zookeeper]
        if self._racks is not None:
            options += ["--rack", self._racks[number - 1]]
        for name, value in self._config.items():
            options += ["-c", f"{name}={value}"]
        return BrokerProcess(self.data / f"broker-{number}", options, f"{HOST}:{port}")

    def close(self) -> None:
        """End all brokers and ZooKeeper, whatever state they are in; may be called again."""
        for broker in self.brokers.values():
            if broker.running:
                broker.kill()
        self._ending.close()

    # What it is.

    @property
    def bootstrap(self) -> str:
        """All brokers' addresses for clients, `HOST:PORT,HOST:PORT,...`."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @property
    def zookeeper(self) -> str:
        """The ensemble's own address, past the proxies."""
        if self._given_zookeeper is not None:
            return self._given_zookeeper
        assert self._ensemble is not None, "the cluster is not open"
        return self._ensemble.connect

    @property
    def zookeeper_is_running(self) -> bool:
        """Whether every member that we started runs."""
        return self._ensemble is None or all(each.running for each in self._ensemble.servers)

    @property
    def _chroot(self) -> str:
        _, slash, path = self.zookeeper.partition("/")
        return slash + path

    @property
    def _zookeeper_hosts(self) -> list[tuple[str, int]]:
        pairs = (each.rpartition(":")[::2] for each in self.zookeeper.partition("/")[0].split(","))
        return [(host, int(port)) for host, port in pairs]

    @property
    def state(self) -> ClusterState:
        """What stands in ZooKeeper: read past every broker."""
        assert self._state is not None, "the cluster is not open"
        return self._state

    @property
    def network(self) -> Network:
        """The proxies."""
        assert self._network is not None, "the cluster was made with proxies=False"
        return self._network

    # Faults of a broker.

    def _broker(self, broker_id: int) -> BrokerProcess:
        if broker_id not in self.brokers:
            numbers = ", ".join(map(str, self.brokers)) or "none: it is not open"
            raise KitError(f"there is no broker {broker_id}; this cluster's are {numbers}")
        return self.brokers[broker_id]

    def launch(self, broker_id: int) -> None:
        """Start a broker that is down; returns at once."""
        broker = self._broker(broker_id)
        if self._network is not None:
            self._network.broker_comes_up(broker_id)
        broker.launch()

    def start(self, broker_id: int) -> None:
        """Start a broker that is down, on its data and ports; waits until it is ready."""
        self.launch(broker_id)
        self._broker(broker_id).wait_ready(WAIT_S)

    def stop(self, broker_id: int) -> None:
        """SIGTERM: a controlled shutdown; KitError unless it ends well."""
        broker = self._broker(broker_id)
        code = broker.stop()
        if self._network is not None:
            self._network.broker_is_down(broker_id)
        if code != 0:
            raise KitError(f"broker {broker_id} ended with {code}:{last_lines(broker.said())}")

    def kill(self, broker_id: int) -> None:
        """SIGKILL; the broker's connections are closed by the system, and new ones refused."""
        broker = self._broker(broker_id)
        if self._network is not None:
            self._network.broker_is_down(broker_id)
        broker.kill()

    def pause(self, broker_id: int) -> None:
        """SIGSTOP: connections stay open and nobody answers."""
        self._broker(broker_id).pause()

    def resume(self, broker_id: int) -> None:
        """SIGCONT."""
        self._broker(broker_id).resume()

    def lose_disk(self, broker_id: int) -> None:
        """Empty the data folder of a broker that is down."""
        broker = self._broker(broker_id)
        assert not broker.running, f"broker {broker_id} is running"
        shutil.rmtree(broker.data, ignore_errors=True)

    # Faults of the network and of ZooKeeper.

    def cut(self, one: int, other: int, *, reset: bool = False) -> None:
        """Between two brokers nothing passes any more, in either direction: connections are
        silent, or ended with `reset`. Clients and ZooKeeper reach both as before."""
        for broker_id in (one, other):
            self._broker(broker_id)
        self.network.cut(one, other, reset=reset)

    def cut_off(self, broker_id: int, *, reset: bool = False) -> None:
        """Cut a broker from every other one."""
        self._broker(broker_id)
        for other in self.brokers:
            if other != broker_id:
                self.network.cut(broker_id, other, reset=reset)

    def cut_zookeeper(self, broker_id: int, *, reset: bool = False) -> None:
        """Between the broker and ZooKeeper nothing passes any more."""
        self._broker(broker_id)
        self.network.cut_zookeeper(broker_id, reset=reset)

    def heal(self) -> None:
        """End every cut; connections that were silent are closed, and so made anew."""
        self.network.heal()

    def expire_session(self, broker_id: int) -> None:
        """End the broker's ZooKeeper session as the ensemble would after too long a silence. The
        broker's connection is ended, too, for it hears of the expiry when it next connects."""
        session = self.state.session_of(broker_id)
        if session is None:
            raise KitError(f"broker {broker_id} is not registered, so its session is not known")
        host, port = self._zookeeper_hosts[0]
        if self._ensemble is not None:
            self._ensemble.expire(session)
        else:
            end_session(f"{host}:{port}", session)
        if self._network is not None:
            self._network.drop_zookeeper(broker_id)

    def kill_zookeeper(self, member: int = 1) -> None:
        """SIGKILL a member of the ensemble, counted from 1."""
        self._member(member).kill()

    def start_zookeeper(self, member: int = 1, *, wait: bool = True) -> None:
        """Start a member that is down; a lone one of three cannot serve, so do not wait for it."""
        self._member(member).start(wait=wait)

    def _member(self, member: int) -> ZooKeeperServer:
        assert self._ensemble is not None, "the ensemble belongs to someone else"
        members = len(self._ensemble.servers)
        if not 1 <= member <= members:
            raise KitError(f"there is no member {member}; the ensemble has 1 to {members}")
        return self._ensemble.servers[member - 1]

    # What it does; each of these waits.

    def controller(self, timeout_s: float = WAIT_S) -> int:
        """The number of the controller, once there is one."""
        return self.wait_for("a controller", self.state.controller, timeout_s)

    def leader(self, topic: str, partition: int = 0, timeout_s: float = WAIT_S) -> int:
        """Who leads the partition, once somebody does."""
        return self.wait_for(
            f"a leader of {topic}-{partition}",
            lambda: self.state.leader(topic, partition),
            timeout_s,
        )

    def wait_leader_other_than(
        self, broker_id: int, topic: str, partition: int = 0, timeout_s: float = WAIT_S
    ) -> int:
        """The leader of the partition once it is not this broker any more."""

        def other() -> int | None:
            leader = self.state.leader(topic, partition)
            return None if leader == broker_id else leader

        return self.wait_for(
            f"a leader of {topic}-{partition} other than {broker_id}", other, timeout_s
        )

    def wait_in_sync(self, topic: str | None = None, timeout_s: float = WAIT_S) -> None:
        """Wait until every replica of the topic, or of all, is in sync and every partition led."""
        behind: list[str] = []

        def whole() -> bool | None:
            topics: Iterable[str] = self.state.topics() if topic is None else [topic]
            behind[:] = [line for each in topics for line in self.state.not_in_sync(each)]
            return not behind or None

        self.wait_for("all replicas to be in sync", whole, timeout_s, lambda: behind[:20])

    def wait_registered(self, broker_ids: Iterable[int], timeout_s: float = WAIT_S) -> None:
        """Wait until exactly these brokers are registered."""
        wanted = sorted(broker_ids)
        self.wait_for(
            f"brokers {wanted} to be the registered ones",
            lambda: self.state.live_brokers() == wanted or None,
            timeout_s,
        )

    def wait_for(
        self,
        what: str,
        look: Callable[[], _T | None],
        timeout_s: float = WAIT_S,
        because: Callable[[], Sequence[str]] = list,
    ) -> _T:
        """What `look` gives once that is not None; KitError with every broker's log otherwise."""
        until = time.monotonic() + timeout_s
        while (found := look()) is None:
            if time.monotonic() > until:
                raise KitError(f"waited {timeout_s:g} s for {what}{self._told(because())}")
            time.sleep(POLL_S)
        return found

    def _told(self, reasons: Sequence[str]) -> str:
        parts = ["".join(f"\n  {reason}" for reason in reasons)]
        for number, broker in self.brokers.items():
            state = "running" if broker.running else "down"
            parts.append(f"\n  broker {number} ({state}) said:{last_lines(broker.said())}")
        return "".join(parts)
