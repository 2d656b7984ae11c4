"""Fetches test suites into the cache, each with its registry's own client."""

import os
import shutil
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from components import cache

BUILD_SECONDS = 1800
OF_LIBRDKAFKA = (
    *("libssl-dev", "libsasl2-dev", "libcurl4-openssl-dev", "zlib1g-dev", "libzstd-dev"),
    *("gcc", "g++", "make"),
)
"""The Debian packages that its build needs."""


class PackageError(Exception):
    """A package could not be fetched or built; the message has a fix or the tool's output."""


def run(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    seconds: float = BUILD_SECONDS,
) -> str:
    """Run a step of a fetch or a build. Raises PackageError, with its last output, if it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
        )
    except FileNotFoundError as fault:
        raise PackageError(f"{command[0]} is not installed, and this suite needs it") from fault
    except subprocess.TimeoutExpired as fault:
        raise PackageError(f"{' '.join(command)} did not end in {seconds:.0f} s") from fault
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-15:])
        raise PackageError(f"{' '.join(command)} ended with {done.returncode}:\n{last}")
    return done.stdout


def unpack(archive: Path, into: Path) -> None:
    with tarfile.open(archive) as files:
        files.extractall(into, filter="data")


def npm_package(name: str, into: Path) -> Path:
    """Fetch `name@version` from npm; return the folder with its files."""
    if shutil.which("npm") is None:
        raise PackageError("npm is not installed. On Debian: apt-get install npm")
    file = run(["npm", "pack", "--silent", name], into).strip().splitlines()[-1]
    unpack(into / file, into)
    return into / "package"


def python_environment(name: str, requirements: Sequence[str]) -> Path:
    """The Python of an environment with these packages; creates it if the cache has none."""
    folder = cache.folder(f"{name}-{zlib.crc32(' '.join(requirements).encode()):08x}")
    python = folder / "bin" / "python"
    if not cache.is_ready(folder):
        print(f"Making an environment with {', '.join(requirements)} ...", flush=True)
        with cache.making(folder) as into:
            run([sys.executable, "-m", "venv", str(into)], into)
            install = [str(python), "-m", "pip", "install", "--quiet"]
            run([*install, "--disable-pip-version-check", *requirements], into)
    return python


def source_distribution(requirement: str, into: Path) -> Path:
    """Fetch the source distribution of `name==version` from PyPI; return its folder."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--no-deps", "--no-build-isolation", "--no-binary", ":all:", requirement], into)
    archive = next(into.glob("*.tar.gz"))
    unpack(archive, into)
    return into / archive.name.removesuffix(".tar.gz")


def missing_debian_packages(names: Sequence[str]) -> list[str]:
    """The packages that are not installed; empty on other systems, whose build reports them."""
    if shutil.which("dpkg-query") is None:
        return []
    missing = []
    for name in names:
        query = ["dpkg-query", "-W", "-f", "${db:Status-Status}", name]
        if subprocess.run(query, capture_output=True, text=True).stdout != "installed":
            missing.append(name)
    return missing


def need_debian_packages(names: Sequence[str]) -> None:
    """Install missing packages if possible, and print that; otherwise raise PackageError."""
    missing = missing_debian_packages(names)
    if not missing:
        return
    line = f"apt-get install -y {' '.join(missing)}"
    if os.geteuid() != 0:
        raise PackageError(f"the build needs Debian packages that are missing. Try: sudo {line}")
    print(f"Installing Debian packages for the build: {line}", flush=True)
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "update", "-qq"], Path("/"), quiet)
    run(line.split(), Path("/"), quiet)


def librdkafka(name: str, package: str, debian: Sequence[str], *goal: str) -> Path:
    """librdkafka's sources from an npm package that ships them, with its libraries and `make *goal`
    built; fetches and builds them if the cache has no `name`. Raises PackageError.
    """
    folder = cache.folder(name)
    if not cache.is_ready(folder):
        need_debian_packages(debian)
        print(f"Building {name} from {package}, one to three minutes ...", flush=True)
        make = ("nice", "make", f"-j{os.cpu_count() or 1}")
        with cache.making(folder) as into:
            source = npm_package(package, into) / "deps" / "librdkafka"
            run(["./configure"], source)
            run([*make, "libs"], source)
            run([*make, *goal], source)
    return folder / "package" / "deps" / "librdkafka"
