"""Puts a package from PyPI into a folder, outside of the environment."""

import subprocess
import sys
from pathlib import Path


class PypiError(Exception):
    """pip could not fetch the package; the message has its last line of output."""


def fetch(package: str, into: Path, *, alone: bool = False) -> None:
    """Install a package, with its dependencies unless `alone`, into a folder. Raises PypiError."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--only-binary", ":all:", *(["--no-deps"] if alone else [])]
    done = subprocess.run(
        [*command, "--target", str(into), package], capture_output=True, text=True
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"pip ended with {done.returncode}"]
        raise PypiError(f"{package} could not be fetched from PyPI: {said[-1]}")
