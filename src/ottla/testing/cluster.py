"""Several brokers, ZooKeeper and the network between them, with every fault a test may need."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

from ottla.client.coordinators import Coordinated
from ottla.testing.broker import controlled_program
from ottla.testing.broker_metadata import Known, not_yet_known
from ottla.testing.broker_process import SERVE, BrokerProcess
from ottla.testing.cluster_state import ClusterState
from ottla.testing.control_socket import ControlSocket
from ottla.testing.election import elect
from ottla.testing.errors import KitError, counted, is_for_the_test, last_lines
from ottla.testing.internal_topics import create_internal_topic
from ottla.testing.network import Network
from ottla.testing.ports import HOST, free_ports
from ottla.testing.secured import Secured
from ottla.testing.timed import Timed
from ottla.testing.zookeeper_server import ZooKeeperEnsemble, ZooKeeperServer
from ottla.testing.zookeeper_session import end_session

if TYPE_CHECKING:
    from ottla.testing.security import Security

__tracebackhide__ = is_for_the_test

WAIT_S: Final = 60.0
POLL_S: Final = 0.02
MAX_REPLICAS: Final = 3
_T = TypeVar("_T")


class Cluster(Secured, Timed):
    """`with Cluster(brokers=3) as cluster:` or `cluster = Cluster().open()` and `.close()`.

    Broker ids are 1 to `brokers`. `config` holds settings for all brokers; new topics get three
    replicas, or one on each broker if there are fewer, unless it has `default.replication.factor`.
    `racks` has one rack for each broker. `zookeeper` names a running ensemble
    (`HOST:PORT,...[/chroot]`) that no other cluster uses; by default the cluster starts its own
    with `ensemble` members. `data` is the folder for the data; by default a temporary folder,
    deleted with the cluster. With `proxies=False` each broker has one listener and brokers connect
    directly: faster, but nothing can be cut. `advertised_ports` has the port that each broker tells
    clients, for a proxy of your own there; `bootstrap` has the brokers' own `ports`. With `control`
    its brokers can be given faults towards clients, be made to roll, retain and compact, and time
    can be advanced; they are slower, because they run on asyncio's own loop. With `security` it has
    TLS, users and ACLs, between brokers too.

    Every wait has a timeout and raises KitError, which shows the end of the relevant logs.
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
        advertised_ports: Sequence[int] | None = None,
        zookeeper_port: int = 0,
        control: bool = False,
        security: Security | None = None,
    ) -> None:
        super().__init__()
        assert brokers > 0, "a cluster has one broker or more"
        assert racks is None or len(racks) == brokers, "one rack for each broker"
        if advertised_ports is not None:
            assert proxies, "without proxies brokers would connect to each other there too"
            assert len(advertised_ports) == brokers, "one advertised port for each broker"
        self.brokers: dict[int, BrokerProcess] = {}
        self._count = brokers
        # Kafka's default of 1 would leave nothing to fail over to.
        replicas = min(MAX_REPLICAS, brokers)
        self._config = {"default.replication.factor": replicas, **(config or {})}
        self._racks = None if racks is None else list(racks)
        self._given_zookeeper = zookeeper
        self._members = ensemble
        self._proxies = proxies
        self._ports = ports
        self._advertised_ports = dict(enumerate(advertised_ports or (), 1))
        self._zookeeper_port = zookeeper_port
        self._given_data = data
        self._is_controlled = control
        self._security = security
        self._sockets: dict[int, ControlSocket] = {}
        self._socket_folder: Path | None = None
        self._ending = ExitStack()
        self._network: Network | None = None
        self._ensemble: ZooKeeperEnsemble | None = None
        self._state: ClusterState | None = None

    # Start and end of the cluster.

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
        """Start everything; wait until every broker is ready and the internal topics exist."""
        try:
            self.prepare()
            for broker_id in self.brokers:
                self.launch(broker_id)
            for broker in self.brokers.values():
                broker.wait_ready(WAIT_S)
            if self._clients is not None:
                self._clients.begin(self.bootstrap)
            self.create_internal_topics()
        except BaseException:
            self.close()
            raise
        return self

    def create_internal_topics(self) -> None:
        """Create __consumer_offsets and __transaction_state while every broker is running: the
        first group or transaction after a broker was killed would otherwise wait for that broker.

        Leaves out a topic if the settings require more replicas than there are brokers.
        """
        first = next(iter(self.brokers.values()))
        for setting, kind in (
            ("offsets.topic.replication.factor", Coordinated.GROUP),
            ("transaction.state.log.replication.factor", Coordinated.TRANSACTION),
        ):
            if int(str(self._config.get(setting, -1))) <= self._count:
                create_internal_topic(first.bootstrap, kind, WAIT_S, self.kit_settings)

    def prepare(self) -> None:
        """Start ZooKeeper and the network; the brokers can then be started one by one."""
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
        if self._security is not None:
            self._secure(self._security)
        if self._proxies:
            self._network = Network()
            self._ending.callback(self._network.close)
        ports = list(self._ports or free_ports(self._count))
        for number, port in enumerate(ports, 1):
            self.brokers[number] = self._make_broker(number, port)

    def _secure(self, security: Security) -> None:
        # Imported late: most clusters of tests are not secured.
        from ottla.security.development.secure_folder import FOLDER
        from ottla.testing.security import SecuredClients

        self._clients = SecuredClients(security, self.data / FOLDER)
        # Of a cluster that was there before, which makes no first users.
        self.state.add_users(self._clients.first_users())

    def _certified_listener(self) -> dict[str, str]:
        """The broker's listener for clients with certificates, if there are any."""
        if self._security is None or not self._security.certificates:
            return {}
        from ottla.testing.security import CERTIFIED

        address = f"{HOST}:{free_ports(1)[0]}"
        self._certified = ",".join(filter(None, (self._certified, address)))
        return {CERTIFIED: address}

    def _make_broker(self, number: int, port: int) -> BrokerProcess:
        options = ["--id", str(number)]
        zookeeper = self.zookeeper
        if self._network is not None:
            inner = free_ports(1)[0]
            advertised = self._network.add_broker(number, inner)
            zookeeper = self._network.add_way_to_zookeeper(number, self._zookeeper_hosts)
            zookeeper += self._chroot
            told = self._advertised_ports.get(number, port)
            if self._clients is not None:
                certified = self._certified_listener()
                options += self._clients.options(
                    {"SASL_SSL": f"{HOST}:{port}", "REPLICATION": f"{HOST}:{inner}"} | certified,
                    {"SASL_SSL": f"{HOST}:{told}", "REPLICATION": f"{HOST}:{advertised}"}
                    | certified,
                )
            else:
                options += _replication_options(port, inner, told, advertised)
        elif self._clients is not None:
            own = {"SASL_SSL": f"{HOST}:{port}"}
            options += self._clients.options(own | self._certified_listener())
        options += ["--zookeeper", zookeeper]
        if self._racks is not None:
            options += ["--rack", self._racks[number - 1]]
        for name, value in self._config.items():
            options += ["-c", f"{name}={value}"]
        program: Sequence[str] = SERVE
        if self._is_controlled:
            self._sockets[number] = ControlSocket(self._folder_for_sockets() / str(number))
            program = controlled_program(self._sockets[number])
        return BrokerProcess(
            self.data / f"broker-{number}", options, f"{HOST}:{port}", program=program
        )

    def _folder_for_sockets(self) -> Path:
        """A short path, unlike the data folder's: a Unix socket's path has 107 bytes at most."""
        if self._socket_folder is None:
            self._socket_folder = Path(tempfile.mkdtemp(prefix="ottla-"))
            self._ending.callback(shutil.rmtree, self._socket_folder, ignore_errors=True)
        return self._socket_folder

    def close(self) -> None:
        """End all brokers and ZooKeeper, whatever their state; may be called again."""
        self._producer = None
        for broker in self.brokers.values():
            if broker.running:
                broker.kill()
        self._ending.close()
        self._socket_folder = None

    # Addresses and state.

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers for clients, separated by commas."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def controls(self) -> Sequence[ControlSocket]:
        """The sockets of the brokers that run."""
        if not self._is_controlled:
            raise KitError("this needs brokers that can be controlled: Cluster(control=True)")
        return [self._sockets[each] for each, broker in self.brokers.items() if broker.running]

    @property
    def zookeeper(self) -> str:
        """The ensemble's own address, without the proxies."""
        if self._given_zookeeper is not None:
            return self._given_zookeeper
        assert self._ensemble is not None, "the cluster is not open"
        return self._ensemble.connect

    @property
    def zookeeper_is_running(self) -> bool:
        """Whether every member that this cluster started is running."""
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
        """The state in ZooKeeper, read without any broker."""
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
            raise KitError(f"there is no broker {broker_id}; this cluster has {numbers}")
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
        """SIGTERM: a controlled shutdown; raises KitError if it fails."""
        broker = self._broker(broker_id)
        code = broker.stop()
        if self._network is not None:
            self._network.broker_is_down(broker_id)
        if code != 0:
            raise KitError(f"broker {broker_id} ended with {code}:{last_lines(broker.said())}")

    def kill(self, broker_id: int) -> None:
        """SIGKILL; the system closes the broker's connections and refuses new ones."""
        broker = self._broker(broker_id)
        if self._network is not None:
            self._network.broker_is_down(broker_id)
        broker.kill()

    def pause(self, broker_id: int) -> None:
        """SIGSTOP: connections stay open, but the broker does not answer."""
        self._broker(broker_id).pause()

    def resume(self, broker_id: int) -> None:
        """SIGCONT."""
        self._broker(broker_id).resume()

    def add(self, port: int = 0, rack: str | None = None) -> int:
        """Start one more broker, by default on a free port; returns its id when it is ready.

        With racks, it needs a `rack`. It has no replicas until topics are created or moved.
        """
        assert (rack is None) == (self._racks is None), "a rack for each broker, or for none"
        number = max(self.brokers) + 1
        if self._racks is not None and rack is not None:
            self._racks.append(rack)
        self.brokers[number] = self._make_broker(number, port or free_ports(1)[0])
        try:
            self.start(number)
        except KitError:
            self.brokers.pop(number).end()
            if self._racks is not None:
                self._racks.pop()
            raise
        return number

    def lose_disk(self, broker_id: int) -> None:
        """Delete the data of a broker that is down."""
        broker = self._broker(broker_id)
        assert not broker.running, f"broker {broker_id} is running"
        shutil.rmtree(broker.data, ignore_errors=True)

    # Faults of the network and of ZooKeeper.

    def cut(self, one: int, other: int, *, reset: bool = False) -> None:
        """Cut the network between two brokers in both directions: connections fall silent, or end
        with `reset`. Clients and ZooKeeper still reach both."""
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
        """Cut the network between the broker and ZooKeeper."""
        self._broker(broker_id)
        self.network.cut_zookeeper(broker_id, reset=reset)

    def heal(self) -> None:
        """End every cut. Silent connections are closed, so that clients reconnect."""
        self.network.heal()

    def expire_session(self, broker_id: int) -> None:
        """End the broker's ZooKeeper session, as the ensemble does after the session timeout. This
        also ends the broker's connection: a client learns of the expiry when it reconnects."""
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
        """Start a member that is down; without a majority it cannot serve, so do not wait."""
        self._member(member).start(wait=wait)

    def _member(self, member: int) -> ZooKeeperServer:
        assert self._ensemble is not None, "the ensemble belongs to someone else"
        members = len(self._ensemble.servers)
        if not 1 <= member <= members:
            raise KitError(f"there is no member {member}; the ensemble has 1 to {members}")
        return self._ensemble.servers[member - 1]

    # Time; see `Timed`.

    def _pass_time(self, by_ms: int) -> None:
        paused = [number for number, broker in self.brokers.items() if broker.is_paused]
        if paused:
            raise KitError(f"broker {paused[0]} is paused: resume it before you advance the time")
        before = self._known(self.state.topics())
        super()._pass_time(by_ms)
        if self._network is None or not self._network.is_cut:
            self._wait_steady(before)

    def _wait_steady(self, before: Known) -> None:
        """Wait until the replicas that were in sync are in sync, and no ISR changes."""
        behind: list[str] = []

        def steady() -> bool | None:
            changing = [name for names in self._ask_at_once("unsettled") for name in names]
            behind[:] = [f"{name}: its ISR changes" for name in changing]
            topics = self.state.topics()
            for (topic, index), now in self._known(topics).items():
                wanted = before[topic, index].isr if (topic, index) in before else now.isr
                if not wanted <= now.isr:
                    behind.append(f"{topic}-{index}: in sync {[*now.isr]}, before {[*wanted]}")
            if not behind:
                behind[:] = self._not_yet_known(topics)
            return not behind or None

        self.wait_for("the replicas to be in sync again", steady, because=lambda: behind[:20])

    # Each of these waits.

    def controller(self, timeout_s: float = WAIT_S) -> int:
        """Wait for a controller; return its broker id."""
        return self.wait_for("a controller", self.state.controller, timeout_s)

    def leader(self, topic: str, partition: int = 0, timeout_s: float = WAIT_S) -> int:
        """Wait until the partition has a leader; return its broker id."""
        return self.wait_for(
            f"a leader of {topic}-{partition}",
            lambda: self.state.leader(topic, partition),
            timeout_s,
            lambda: self._absence(topic, partition),
        )

    def _absence(self, topic: str, partition: int) -> list[str]:
        """Why a partition has no leader, if that is because nobody created it."""
        replicas = self.state.replicas(topic)
        if replicas is None:
            return [f"there is no topic {topic}: create it first"]
        if partition not in replicas:
            has = counted(len(replicas), "partition")
            return [f"{topic} has no partition {partition}; it has {has}"]
        return []

    def wait_leader_other_than(
        self, broker_id: int, topic: str, partition: int = 0, timeout_s: float = WAIT_S
    ) -> int:
        """Wait until another broker leads the partition; return its id."""

        def other() -> int | None:
            leader = self.state.leader(topic, partition)
            return None if leader == broker_id else leader

        return self.wait_for(
            f"a leader of {topic}-{partition} other than {broker_id}", other, timeout_s
        )

    def elect(self, leader: int, topic: str, partition: int = 0, timeout_s: float = WAIT_S) -> None:
        """Make this broker, one of the partition's replicas, its leader; waits until it leads.

        By Kafka's own requests: the broker becomes the preferred replica, which is then elected.
        """
        replicas = (self.state.replicas(topic) or {}).get(partition)
        if replicas is None:
            raise KitError(f"there is no partition {topic}-{partition}")
        if leader not in replicas:
            raise KitError(f"broker {leader} has no replica of {topic}-{partition}: {replicas}")
        order = [leader, *(each for each in replicas if each != leader)]
        address = self._broker(self.controller()).bootstrap
        elect(address, topic, partition, order, timeout_s, self.kit_settings)
        self.wait_for(
            f"broker {leader} to lead {topic}-{partition}",
            lambda: self.state.leader(topic, partition) == leader or None,
            timeout_s,
        )

    def wait_in_sync(self, topic: str | None = None, timeout_s: float = WAIT_S) -> None:
        """Wait until each partition of the topic, or of all topics, has a leader and a full ISR,
        and every registered broker says so to clients."""
        behind: list[str] = []

        def whole() -> bool | None:
            topics = self.state.topics() if topic is None else [topic]
            behind[:] = [line for each in topics for line in self.state.not_in_sync(each)]
            if not behind:
                behind[:] = self._not_yet_known(topics)
            return not behind or None

        self.wait_for("all replicas to be in sync", whole, timeout_s, lambda: behind[:20])

    def _not_yet_known(self, topics: Sequence[str]) -> list[str]:
        """What the registered brokers' metadata does not say yet."""
        actual = self._known(topics)
        return [
            line
            for broker_id in self.state.live_brokers()
            if broker_id in self.brokers and self.brokers[broker_id].running
            for line in not_yet_known(
                self.brokers[broker_id].bootstrap, topics, actual, self.kit_settings
            )
        ]

    def _known(self, topics: Iterable[str]) -> Known:
        return {key: known for each in topics for key, known in self.state.known(each).items()}

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
        check: Callable[[], _T | None],
        timeout_s: float = WAIT_S,
        because: Callable[[], Sequence[str]] = list,
    ) -> _T:
        """Call `check` until it returns a value; raises KitError with every broker's log."""
        until = time.monotonic() + timeout_s
        while (found := check()) is None:
            if time.monotonic() > until:
                raise KitError(f"waited {timeout_s:g} s for {what}{self._describe(because())}")
            time.sleep(POLL_S)
        return found

    def _describe(self, reasons: Sequence[str]) -> str:
        parts = ["".join(f"\n  {reason}" for reason in reasons)]
        for number, broker in self.brokers.items():
            state = "running" if broker.running else "down"
            parts.append(f"\n  broker {number} ({state}) said:{last_lines(broker.said())}")
        return "".join(parts)


def _replication_options(port: int, inner: int, told: int, advertised: int) -> list[str]:
    """Without security: clients at `port`, which they are told as `told`; brokers at `inner`."""
    settings = (
        f"listeners=PLAINTEXT://{HOST}:{port},REPLICATION://{HOST}:{inner}",
        f"advertised.listeners=PLAINTEXT://{HOST}:{told},REPLICATION://{HOST}:{advertised}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,REPLICATION:PLAINTEXT",
        "inter.broker.listener.name=REPLICATION",
    )
    return [word for setting in settings for word in ("-c", setting)]
