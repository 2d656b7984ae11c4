"""S3 as moto plays it: a server of the machine's own, and the jars of Hadoop's file system s3a.

moto keeps objects in memory, with S3's own protocol. It does not check logins.
"""

import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from components import cache, ivy, pypi
from components.child import Child
from ottla.testing.ports import free_ports

COORDINATE = "org.apache.hadoop:hadoop-aws:3.4.1"
SERVER = "moto[server]==5.2.5"
START_WITHIN_S = 60
# It has the address and nothing else: moto prefers a role of the machine to no login at all.
LOGIN = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


class S3Error(Exception):
    """The server did not start; the message has its last output."""


def fetched_jars(settings: Path | None = None) -> list[Path]:
    """The jars, fetched first if they are missing (560 MB). Raises FetchError, NoJavaError."""
    folder = cache.folder(f"hadoop-aws-{COORDINATE.rpartition(':')[2]}")
    if not cache.is_ready(folder):
        with cache.making(folder) as into:
            ivy.fetch([COORDINATE], into, settings)
    return sorted(folder.glob("*.jar"))


def fetched_server() -> Path:
    """The folder with moto's server, fetched first if it is missing. Raises PypiError."""
    folder = cache.folder(f"moto-server-{SERVER.rpartition('=')[2]}")
    if not cache.is_ready(folder):
        with cache.making(folder) as into:
            pypi.fetch(SERVER, into)
    return folder


class S3:
    """One server without buckets; `programs` is the folder of `fetched_server`."""

    def __init__(self, programs: Path, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self._programs = programs
        self._log = folder / "moto.log"
        self.child: Child

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers. Raises S3Error."""
        server = "import sys; from moto.server import main; main(sys.argv[1:])"
        command = [sys.executable, "-c", server, "-H", "127.0.0.1", "-p", str(self.port)]
        self.child = Child(command, self._log, {"PYTHONPATH": str(self._programs), **LOGIN})
        until = time.monotonic() + START_WITHIN_S
        while not self._answers():
            if self.child.process.poll() is not None or time.monotonic() > until:
                raise S3Error(self.child.last_words())
            time.sleep(0.1)

    def make_bucket(self, name: str) -> None:
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            pass

    def settings(self) -> dict[str, str]:
        """What Spark needs to find this server instead of AWS."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            "spark.hadoop.fs.s3a.access.key": LOGIN["AWS_ACCESS_KEY_ID"],
            "spark.hadoop.fs.s3a.secret.key": LOGIN["AWS_SECRET_ACCESS_KEY"],
        }

    def stop(self) -> None:
        if hasattr(self, "child"):
            self.child.stop()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.endpoint, timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False
