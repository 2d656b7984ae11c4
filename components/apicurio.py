"""Apicurio's schema registry as a process, for the tests: Confluent's REST interface.

It is fetched once from Maven Central (142 MB) into the cache, and keeps its schemas in memory.
"""

import contextlib
import hashlib
import os
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from components import cache
from ottla.testing.zookeeper_jars import MAVEN_CENTRAL, VARIABLE

VERSION: Final = "2.6.13.Final"
_NAME: Final = "apicurio-registry-app"
_SHA256: Final = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
_PART_BYTES: Final = 1 << 20
START_WITHIN_S: Final = 120.0


class ApicurioError(Exception):
    """Apicurio could not be fetched or started; one line."""


def fetched() -> Path:
    """Return the jar to run, from the cache. Raises ApicurioError where it cannot be fetched."""
    folder = cache.folder(f"apicurio-{VERSION}")
    if not cache.is_ready(folder):
        source = os.environ.get(VARIABLE, MAVEN_CENTRAL).rstrip("/")
        url = f"{source}/io/apicurio/{_NAME}/{VERSION}/{_NAME}-{VERSION}-all.tar.gz"
        try:
            with cache.making(folder) as into, tempfile.TemporaryFile() as archive:
                _download(url, archive)
                with tarfile.open(fileobj=archive) as files:
                    files.extractall(into, filter="data")
        except OSError as error:
            raise ApicurioError(f"{url} cannot be fetched: {error}") from error
    return folder / f"{_NAME}-{VERSION}-runner.jar"


def _download(url: str, into: IO[bytes]) -> None:
    digest = hashlib.sha256()
    with urllib.request.urlopen(url, timeout=60) as response:
        while part := response.read(_PART_BYTES):
            digest.update(part)
            into.write(part)
    if digest.hexdigest() != _SHA256:
        raise ApicurioError(f"{url} is not the file that is expected: its SHA-256 differs")
    into.seek(0)


@contextlib.contextmanager
def serve(log: Path, java: str = "java") -> Iterator[str]:
    """Run a registry on a free port; gives the URL for a client. Raises ApicurioError."""
    jar = fetched()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                java,
                *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                "-Dquarkus.http.host=127.0.0.1",
                f"-Dquarkus.http.port={port}",
                *("-jar", str(jar)),
            ],
            stdout=output,
            stderr=output,
            cwd=jar.parent,
        )
    try:
        url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        _wait(f"{url}/subjects", process, log)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + START_WITHIN_S
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(0.1)
    raise ApicurioError(f"Apicurio did not start: {log.read_text()[-500:]}")
