"""`ottla cluster start`: ZooKeeper and brokers as processes, watched until Ctrl-C."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from ottla.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED, Failed
from ottla.cli.screen import note, printable, say, write
from ottla.testing.broker_process import POLL_S, BrokerProcess
from ottla.testing.cluster import Cluster
from ottla.testing.errors import KitError, ProcessEndedError
from ottla.testing.ports import free_ports, is_free

FILE_NAME: Final = "cluster.json"
DEFAULT_BROKERS: Final = 3
FIRST_PORT: Final = 9092
ZOOKEEPER_PORT: Final = 2181
LOOK_PAUSE_S: Final = 0.1
MOST_REPLICAS: Final = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """What a cluster's folder says of it, so that the next start is the same."""

    brokers: int
    first_port: int
    zookeeper_port: int

    @property
    def ports(self) -> list[int]:
        return list(range(self.first_port, self.first_port + self.brokers))


def run_cluster(
    brokers: int | None,
    zookeeper: str | None,
    data: Path,
    port: int | None,
    config: Mapping[str, str],
) -> int:
    """Run until Ctrl-C or SIGTERM; gives the exit code. Raises Failed for what keeps it from
    starting."""
    layout = chosen_layout(data, brokers, port)
    check_ports(layout, own_zookeeper=zookeeper is None)
    replicas = min(MOST_REPLICAS, layout.brokers)
    cluster = Cluster(
        layout.brokers,
        # Who starts three brokers wants to see three replicas.
        {"default.replication.factor": replicas, **config},
        zookeeper,
        data=data,
        proxies=False,
        ports=layout.ports,
        zookeeper_port=layout.zookeeper_port,
    )
    with terminated_as_interrupted():
        try:
            start(cluster, layout, zookeeper)
            return watch(cluster)
        except KeyboardInterrupt:
            return stop(cluster)
        except KitError as error:
            raise failure(error) from None
        finally:
            cluster.close()


def chosen_layout(data: Path, brokers: int | None, port: int | None) -> Layout:
    """The folder's layout with what was typed over it. Raises Failed."""
    known = read_layout(data)
    if known is None:
        if data.is_file():
            raise Failed(f"--data {data} is a file; it wants a folder.")
        zookeeper_port = ZOOKEEPER_PORT if is_free(ZOOKEEPER_PORT) else free_ports(1)[0]
        known = Layout(brokers or DEFAULT_BROKERS, port or FIRST_PORT, zookeeper_port)
    elif brokers is not None and brokers < known.brokers:
        raise Failed(
            f"{data} holds a cluster of {known.brokers} brokers; with {brokers} some of its data "
            "would be missing.",
            f"Say --brokers {known.brokers} or nothing, or give another --data.",
        )
    chosen = Layout(brokers or known.brokers, port or known.first_port, known.zookeeper_port)
    if chosen.first_port + chosen.brokers > 65536:
        raise Failed(f"--port {chosen.first_port} leaves no room for {chosen.brokers} brokers.")
    return chosen


def read_layout(data: Path) -> Layout | None:
    """What an earlier start wrote, or None. Raises Failed for a file that is not ours."""
    file = data / FILE_NAME
    try:
        found = json.loads(file.read_text())
        return Layout(**{name: int(found[name]) for name in Layout.__slots__})
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Failed(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise Failed(
            f"{file} is not what `ottla cluster start` writes.", "Give another --data."
        ) from None


def write_layout(data: Path, layout: Layout) -> None:
    (data / FILE_NAME).write_text(json.dumps(asdict(layout), indent=2) + "\n")


def check_ports(layout: Layout, *, own_zookeeper: bool) -> None:
    """Raises Failed for a port that is in use, before anything is started."""
    if own_zookeeper and not is_free(layout.zookeeper_port):
        raise Failed(
            f"port {layout.zookeeper_port}, this cluster's ZooKeeper's, is in use.",
            "Does the cluster run already? Stop it, or give another --data.",
        )
    for number, port in enumerate(layout.ports, 1):
        if not is_free(port):
            raise Failed(
                f"port {port}, wanted for broker {number}, is in use.",
                "Stop what listens there, or give --port FIRST.",
            )


def start(cluster: Cluster, layout: Layout, zookeeper: str | None) -> None:
    """Start all, and tell of each address as it comes up."""
    try:
        cluster.prepare()
    except OSError as error:
        raise Failed(f"cannot use {cluster.data}: {error.strerror or error}.") from None
    write_layout(cluster.data, layout)
    tell("ZooKeeper", cluster.zookeeper, "not ours" if zookeeper else "")
    began_s = time.monotonic()
    for number in cluster.brokers:
        cluster.launch(number)
    waiting = dict(cluster.brokers)
    while waiting:
        for number, broker in list(waiting.items()):
            if broker.is_ready():
                tell(f"broker {number}", broker.bootstrap, f"{time.monotonic() - began_s:.1f} s")
                del waiting[number]
        time.sleep(POLL_S)
    say(f"Ready. Data and logs are in {cluster.data}. Ctrl-C stops it.")
    write(f"  export OTTLA_BOOTSTRAP={cluster.bootstrap}\n", flush=True)


def tell(name: str, address: str, remark: str) -> None:
    write(f"{name:<10}  {address:<21}  {remark}".rstrip() + "\n", flush=True)


def watch(cluster: Cluster) -> int:
    """Stay until Ctrl-C; tells of each process that ends by itself."""
    up = dict(cluster.brokers)
    zookeeper = True
    while up:
        for number, broker in list(up.items()):
            if not broker.running:
                note(f"broker {number} ended unexpectedly: {why_ended(broker)}")
                del up[number]
        if zookeeper and not cluster.zookeeper_is_running:
            note("ZooKeeper ended unexpectedly; brokers go on, but nothing can be changed.")
            zookeeper = False
        time.sleep(LOOK_PAUSE_S)
    note("No broker is left.")
    return EXIT_FAILED


def why_ended(broker: BrokerProcess) -> str:
    """The exit and the end of the log, in one line."""
    assert broker.process is not None
    code = broker.process.returncode
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    lines = broker.said().strip().splitlines()
    said = f", after {printable(lines[-1])!r}" if lines else ""
    return f"{how}{said} (log: {broker.errors})"


def stop(cluster: Cluster) -> int:
    """Stop the brokers in turn, each after it has handed on its leaderships; then ZooKeeper."""
    note("Stopping; Ctrl-C again ends all at once.")
    try:
        for number, broker in reversed(cluster.brokers.items()):
            if broker.running:
                broker.resume()
                code = broker.stop()
                note(f"broker {number} stopped" + (f" with exit code {code}" if code else ""))
        cluster.close()
        note("Stopped.")
    except KeyboardInterrupt:
        note("Ended at once.")
    except KitError as error:
        note(str(error).splitlines()[0])
        return EXIT_FAILED
    return EXIT_INTERRUPTED


def failure(error: KitError) -> Failed:
    """What kept a process from starting, as its own last line where it has one."""
    if isinstance(error, ProcessEndedError):
        return Failed(f"a broker did not start: {printable(error.why)}")
    first, *more = str(error).splitlines()
    return Failed(first.rstrip(":"), "\n  ".join(line.strip() for line in more[-3:]) or None)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before: Any = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        sys.stdout.flush()
