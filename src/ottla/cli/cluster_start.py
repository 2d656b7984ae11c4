"""`ottla cluster start`: runs ZooKeeper and brokers as processes, and watches them until Ctrl-C."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from ottla.cli.cluster_layout import Layout, chosen_layout, claimed, write_layout
from ottla.cli.cluster_lock import held
from ottla.cli.cluster_requests import Requests
from ottla.cli.cluster_watch import ClusterWatch
from ottla.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED, Failed, UsageFailed
from ottla.cli.screen import note, printable, say, write
from ottla.client.addresses import why_unreachable
from ottla.testing.broker_process import POLL_S, BrokerProcess
from ottla.testing.cluster import Cluster
from ottla.testing.errors import KitError, ProcessEndedError
from ottla.testing.zookeeper_server import zookeeper_command

SLOW_START_S: Final = 30.0
OF_ONE_BROKER: Final = frozenset(
    {
        *("node.id", "broker.id", "broker.rack", "zookeeper.connect"),
        *("listeners", "advertised.listeners", "log.dir", "log.dirs"),
    }
)


def run_cluster(
    brokers: int | None,
    zookeeper: str | None,
    data: Path,
    port: int | None,
    racks: str | None,
    config: Mapping[str, str],
) -> int:
    """Run until Ctrl-C or SIGTERM; returns the exit code. Raises Failed if the cluster cannot
    start.
    """
    layout = chosen_layout(data, brokers, port, racks)
    check_settings(config)
    check_zookeeper(zookeeper)
    with (
        interrupted_by_signals(),
        held(data),
        claimed(layout, data, own_zookeeper=zookeeper is None) as layout,
    ):
        cluster = Cluster(
            layout.brokers,
            config,
            zookeeper,
            racks=layout.racks or None,
            data=data,
            proxies=False,
            ports=layout.ports,
            zookeeper_port=layout.zookeeper_port,
        )
        try:
            start(cluster, layout, zookeeper)
            return ClusterWatch(cluster, layout, Requests(data)).run()
        except KeyboardInterrupt:
            return stop(cluster)
        except KitError as error:
            raise failure(error) from None
        finally:
            cluster.close()


def check_settings(settings: Mapping[str, str]) -> None:
    """Raises Failed for settings that every broker would reject, before anything starts."""
    # Imported late, like everything that belongs to brokers.
    from ottla.config import BrokerConfig, ConfigError

    for name in sorted(OF_ONE_BROKER & settings.keys()):
        raise UsageFailed(
            f"--config {name} cannot be the same for all brokers: `cluster start` sets it.",
            "To see its own options: ottla cluster start --help",
        )
    try:
        BrokerConfig.from_properties(settings)
    except ConfigError as error:
        raise UsageFailed(f"--config: {error}") from None


def check_zookeeper(given: str | None) -> None:
    """Raises Failed if ZooKeeper is unavailable: no Java, no jars and no download, or nothing
    listens at the address.
    """
    if given is None:
        try:
            zookeeper_command(note)
        except KitError as error:
            raise failure(error) from None
        return
    reason = why_unreachable(zookeeper_places(given))
    if reason is not None:
        raise Failed(
            f"cannot reach ZooKeeper at {given}: {reason}.",
            "Start it, correct the address, or leave out --zookeeper to start one.",
        )


def zookeeper_places(given: str) -> Iterator[tuple[str, int]]:
    """`HOST:PORT,HOST:PORT/PATH` as pairs. Raises UsageFailed for anything else."""
    for word in given.partition("/")[0].split(","):
        host, _, port = word.strip().rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise UsageFailed(
                f"--zookeeper must be HOST:PORT[,HOST:PORT...][/PATH], not {given!r}.",
                "For example: --zookeeper 127.0.0.1:2181/kafka",
            )
        yield host.strip("[]"), int(port)


def start(cluster: Cluster, layout: Layout, zookeeper: str | None) -> None:
    """Start all processes, and print each address as it comes up."""
    try:
        cluster.prepare()
    except OSError as error:
        raise Failed(f"cannot use {cluster.data}: {error.strerror or error}.") from None
    write_layout(cluster.data, layout)
    tell("ZooKeeper", cluster.zookeeper, "external" if zookeeper else "")
    began_s = time.monotonic()
    slow_s = began_s + SLOW_START_S
    for number in cluster.brokers:
        cluster.launch(number)
    waiting = dict(cluster.brokers)
    while waiting:
        for number, broker in list(waiting.items()):
            if is_ready(number, broker):
                tell(f"broker {number}", broker.bootstrap, f"{time.monotonic() - began_s:.1f} s")
                del waiting[number]
        if waiting and time.monotonic() > slow_s:
            # No limit: after a crash a broker scans all data that it had not flushed.
            slow_s = inf
            logs = ", ".join(str(broker.errors) for broker in waiting.values())
            note(f"Still starting: brokers {', '.join(map(str, waiting))}. Logs: {logs}")
        time.sleep(POLL_S)
    try:
        cluster.create_internal_topics()
    except KitError as error:
        note(f"Consumer groups or transactions are not available yet: {error}")
    say(f"Ready. Data and logs are in {cluster.data}. Ctrl-C stops it.")
    write(f"  export OTTLA_BOOTSTRAP={cluster.bootstrap}\n", flush=True)


def is_ready(number: int, broker: BrokerProcess) -> bool:
    """Whether the broker serves. Raises Failed with its last output if it has exited."""
    try:
        return broker.is_ready()
    except ProcessEndedError as error:
        why = printable(error.why.removeprefix("ottla serve: "))
        raise Failed(
            f"broker {number} did not start: {why.rstrip('.')}.", f"Its log: {broker.errors}"
        ) from None


def tell(name: str, address: str, remark: str) -> None:
    write(f"{name:<10}  {address:<21}  {remark}".rstrip() + "\n", flush=True)


def stop(cluster: Cluster) -> int:
    """Stop the brokers in turn, each after it has handed over its leaderships; then ZooKeeper."""
    note("Stopping. Press Ctrl-C again to kill all processes at once.")
    try:
        for number, broker in reversed(cluster.brokers.items()):
            if broker.running:
                broker.resume()
                code = broker.stop()
                note(f"broker {number} stopped" + (f" with exit code {code}" if code else ""))
        cluster.close()
        note("Stopped.")
    except KeyboardInterrupt:
        note("Killed all processes.")
    except KitError as error:
        note(str(error).splitlines()[0])
        return EXIT_FAILED
    return EXIT_INTERRUPTED


def failure(error: KitError) -> Failed:
    """Why a process did not start: its last line of output, if it has one."""
    first, *more = str(error).splitlines()
    return Failed(first.rstrip(":"), "\n  ".join(line.strip() for line in more[-3:]) or None)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP act like Ctrl-C, and Ctrl-C also works in the background, where shells
    ignore it.

    `nohup` keeps its meaning.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before: dict[signal.Signals, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        with suppress(OSError):
            sys.stdout.flush()
