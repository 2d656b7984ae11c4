"""Runs ZooKeeper and brokers as processes, and watches them until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Final

from ottla.client.addresses import why_unreachable
from ottla.devcluster.errors import DevClusterError, OptionError
from ottla.devcluster.layout import Layout, chosen_layout, claimed, write_layout
from ottla.devcluster.lock import held
from ottla.devcluster.reporter import Reporter
from ottla.devcluster.requests import Requests
from ottla.devcluster.watch import ClusterWatch
from ottla.security.development.certificates import CertificateError
from ottla.security.development.hosts import own_hosts
from ottla.security.development.secure_folder import (
    FOLDER,
    SecureFolder,
    check_given,
    secure_folder,
)
from ottla.testing.broker_process import POLL_S, BrokerProcess
from ottla.testing.cluster import Cluster
from ottla.testing.errors import KitError, ProcessEndedError
from ottla.testing.security import Security
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
    reporter: Reporter,
    *,
    secure: bool = False,
) -> bool:
    """Run until KeyboardInterrupt (a second one kills all processes), or until every broker has
    exited by itself.

    Returns whether it was interrupted, and all processes ended then. Raises DevClusterError if the
    cluster cannot start, and OwnSettingError for a setting that --secure sets itself.
    """
    layout = chosen_layout(data, brokers, port, racks, secure=secure)
    check_settings(config)
    if layout.secure:
        check_given(config)
    check_zookeeper(zookeeper, reporter)
    with (
        held(data),
        claimed(layout, data, own_zookeeper=zookeeper is None) as layout,
    ):
        folder = secured(data) if layout.secure else None
        cluster = Cluster(
            layout.brokers,
            config,
            zookeeper,
            racks=layout.racks or None,
            data=data,
            proxies=False,
            ports=layout.ports,
            zookeeper_port=layout.zookeeper_port,
            security=None if folder is None else Security(),
        )
        try:
            start(cluster, layout, zookeeper, folder, reporter)
            ClusterWatch(cluster, layout, Requests(data), reporter).run()
            return False
        except KeyboardInterrupt:
            return stop(cluster, reporter)
        except KitError as error:
            raise failure(error) from None
        finally:
            cluster.close()


def check_settings(settings: Mapping[str, str]) -> None:
    """Raises OptionError for settings that every broker would reject, before anything starts."""
    # Imported late, like everything that belongs to brokers.
    from ottla.config import BrokerConfig, ConfigError

    for name in sorted(OF_ONE_BROKER & settings.keys()):
        raise OptionError(
            f"--config {name} cannot be the same for all brokers: `cluster start` sets it.",
            "To see its own options: ottla cluster start --help",
        )
    try:
        BrokerConfig.from_properties(settings)
    except ConfigError as error:
        raise OptionError(f"--config: {error}") from None


def secured(data: Path) -> SecureFolder:
    """The certificates and passwords of a cluster in this folder; what is missing is made. Raises
    DevClusterError.
    """
    try:
        return secure_folder(data / FOLDER, own_hosts())
    except CertificateError as error:
        raise DevClusterError(error.message, error.hint) from None


def check_zookeeper(given: str | None, reporter: Reporter) -> None:
    """Raises DevClusterError if ZooKeeper is unavailable: no Java, no jars and no download, or
    nothing listens at the address.
    """
    if given is None:
        try:
            zookeeper_command(reporter.note)
        except KitError as error:
            raise failure(error) from None
        return
    reason = why_unreachable(zookeeper_addresses(given))
    if reason is not None:
        raise DevClusterError(
            f"cannot reach ZooKeeper at {given}: {reason}.",
            "Start it, correct the address, or leave out --zookeeper to start one.",
        )


def zookeeper_addresses(given: str) -> Iterator[tuple[str, int]]:
    """`HOST:PORT,HOST:PORT/PATH` as pairs. Raises OptionError for anything else."""
    for word in given.partition("/")[0].split(","):
        host, _, port = word.strip().rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise OptionError(
                f"--zookeeper must be HOST:PORT[,HOST:PORT...][/PATH], not {given!r}.",
                "For example: --zookeeper 127.0.0.1:2181/kafka",
            )
        yield host.strip("[]"), int(port)


def start(
    cluster: Cluster,
    layout: Layout,
    zookeeper: str | None,
    folder: SecureFolder | None,
    reporter: Reporter,
) -> None:
    """Start all processes, and report each as it comes up."""
    try:
        cluster.prepare()
    except OSError as error:
        raise DevClusterError(f"cannot use {cluster.data}: {error.strerror or error}.") from None
    write_layout(cluster.data, layout)
    reporter.process_is_up("ZooKeeper", cluster.zookeeper, "external" if zookeeper else "")
    began_s = time.monotonic()
    slow_s = began_s + SLOW_START_S
    for number in cluster.brokers:
        cluster.launch(number)
    waiting = dict(cluster.brokers)
    while waiting:
        for number, broker in list(waiting.items()):
            if is_ready(number, broker):
                reporter.process_is_up(
                    f"broker {number}", broker.bootstrap, f"{time.monotonic() - began_s:.1f} s"
                )
                del waiting[number]
        if waiting and time.monotonic() > slow_s:
            # No limit: after a crash a broker scans all data that it had not flushed.
            slow_s = inf
            logs = ", ".join(str(broker.errors) for broker in waiting.values())
            reporter.note(f"Still starting: brokers {', '.join(map(str, waiting))}. Logs: {logs}")
        time.sleep(POLL_S)
    try:
        cluster.create_internal_topics()
    except KitError as error:
        reporter.note(f"Consumer groups or transactions are not available yet: {error}")
    reporter.cluster_is_ready(cluster.data, cluster.bootstrap, folder)


def is_ready(number: int, broker: BrokerProcess) -> bool:
    """Whether the broker serves. Raises DevClusterError with its last output if it has exited."""
    try:
        return broker.is_ready()
    except ProcessEndedError as error:
        why = error.why.removeprefix("ottla serve: ")
        raise DevClusterError(
            f"broker {number} did not start: {why.rstrip('.')}.", f"Its log: {broker.errors}"
        ) from None


def stop(cluster: Cluster, reporter: Reporter) -> bool:
    """Stop the brokers in turn, each after it has handed over its leaderships; then ZooKeeper.

    Returns whether all have ended.
    """
    reporter.note("Stopping. Press Ctrl-C again to kill all processes at once.")
    try:
        for number, broker in reversed(cluster.brokers.items()):
            if broker.running:
                broker.resume()
                code = broker.stop()
                reporter.note(
                    f"broker {number} stopped" + (f" with exit code {code}" if code else "")
                )
        cluster.close()
        reporter.note("Stopped.")
    except KeyboardInterrupt:
        reporter.note("Killed all processes.")
    except KitError as error:
        reporter.note(str(error).splitlines()[0])
        return False
    return True


def failure(error: KitError) -> DevClusterError:
    """Why a process did not start: its last line of output, if it has one."""
    first, *more = str(error).splitlines()
    return DevClusterError(
        first.rstrip(":"), "\n  ".join(line.strip() for line in more[-3:]) or None
    )
