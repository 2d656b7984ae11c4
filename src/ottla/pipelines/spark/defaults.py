"""Settings that a session gets unless the user has set them. Pure: the facts are passed in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

PYTHON: Final = "spark.pyspark.python"
SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"
CONSOLE_PROGRESS: Final = "spark.ui.showConsoleProgress"
TIME_ZONE: Final = "spark.sql.session.timeZone"

_ALWAYS: Final = {
    # Delta rebuilds the state of a table at each commit with 50 tasks; for a stream of small
    # commits that is most of the time (2.3 s against 1.1 s a batch on two cores).
    "spark.databricks.delta.snapshotPartitions": "2",
    # Each commit's checksum would have the list of the table's files, up to 50. No reader of Delta
    # uses it. The first commit of a table runs a job of Spark for it, and every tenth one, the
    # checkpoint, another job that compares it with the rebuilt state.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    # Outside of UTC Delta compares that list at every commit, because times before 1883 may give
    # false alarms there (Snapshot.allFilesInCrcVerificationForceEnabled).
    "spark.databricks.delta.allFilesInCrc.verificationMode.forceOnNonUTC.enabled": "false",
    # Spark compiles a class for each part of a plan and keeps 100. A MERGE and its commit take 75
    # to 94, so what else runs in the session makes Spark compile them for each batch (an upsert of
    # 100,000 rows: 2.8 s against 2.35 s).
    "spark.sql.codegen.cache.maxEntries": "1000",
    # A record whose time names no zone must not mean something else on another machine.
    TIME_ZONE: "UTC",
}
# One machine needs no name of its own, which may not resolve, and nobody else's connections.
_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_LOCAL_MASTER: Final = re.compile(r"local(?:\[(?P<cores>\d+|\*)(?:\s*,\s*\d+)?\])?")


def is_local(master: str) -> bool:
    """Tell whether driver and executor are one process (`local-cluster` is not)."""
    return _LOCAL_MASTER.fullmatch(master) is not None


def local_cores(master: str, cores: int) -> int | None:
    """Return how many tasks a local master runs at a time, None for another master.

    `cores` are those of this machine.
    """
    match = _LOCAL_MASTER.fullmatch(master)
    if match is None:
        return None
    given = match["cores"] or "1"
    return cores if given == "*" else max(int(given), 1)


def defaults(
    master: str, *, cores: int, python: str, environ: Mapping[str, str], terminal: bool
) -> dict[str, str]:
    """Return the settings for a new session.

    Args:
        cores: the cores that this process may use.
        python: the Python of this process, which runs the user's functions (UDFs) too.
        environ: PYSPARK_PYTHON names another one.
        terminal: whether stderr is a terminal, where Spark draws a progress bar.
    """
    settings = dict(_ALWAYS)
    if (tasks := local_cores(master, cores)) is not None:
        # Spark's 200 are for a cluster: on two cores a windowed count of 2,000 rows takes
        # 7 to 11 s with them and 0.5 to 1.1 s with 2.
        settings |= _LOCAL | {SHUFFLE_PARTITIONS: str(tasks)}
    # On YARN and Kubernetes the executors have files of their own: the image says which Python.
    if not master.startswith(("yarn", "k8s")):
        settings[PYTHON] = environ.get("PYSPARK_PYTHON") or python
    if not terminal:
        settings[CONSOLE_PROGRESS] = "false"
    return settings
