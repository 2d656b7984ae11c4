"""Which version of a Delta table holds which batch, read from the table's log.

Delta's protocol: each commit is `_delta_log/<version, 20 digits>.json`, one action a line. The
action `txn` names the writer (`appId`: for a stream its query's id) and the writer's own number
(`version`: the batch). Delta skips a write whose number that writer has committed already; that
is what makes a batch that runs twice arrive once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ottla.pipelines.spark.files import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How many commits are looked at, backwards, before the search is given up.
MOST_COMMITS: Final = 1_000
_MOST_STEPS: Final = 1_000_000


class DeltaLog:
    """The log of one table."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._files = Files(spark, location)
        self._latest = -1

    @property
    def location(self) -> str:
        return self._files.location

    def is_delta(self) -> bool:
        return self._files.exists("_delta_log")

    def holds_other_files(self) -> bool:
        """Tell whether the folder has files but is no Delta table."""
        return not self.is_delta() and any(
            not name.startswith(("_", ".")) for name in self._files.names()
        )

    def latest(self) -> int:
        """Return the latest version, -1 when there is no table yet."""
        if self._latest < 0:
            # Old commits are cleaned up, but only those before a checkpoint.
            pointer = self._files.read("_delta_log/_last_checkpoint")
            self._latest = int(json.loads(pointer)["version"]) if pointer else -1
        for _ in range(_MOST_STEPS):
            if not self._files.exists(_commit(self._latest + 1)):
                break
            self._latest += 1
        return self._latest

    def find(self, app_id: str, batch: int | None, *, after: int = -1) -> int | None:
        """Return the version in which this writer committed this batch, None if not found.

        Looks backwards from the latest version to `after` (not included), at most
        MOST_COMMITS. With batch None any commit of this writer is found.
        """
        latest = self.latest()
        for version in range(latest, max(after, latest - MOST_COMMITS), -1):
            text = self._files.read(_commit(version))
            if text is None:
                return None
            if _has(text, app_id, batch):
                return version
        return None

    def reaches_back(self) -> bool:
        """Tell whether `find` sees every commit from the first on."""
        return self.latest() < MOST_COMMITS and self._files.exists(_commit(0))


def _commit(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def _has(commit: str, app_id: str, batch: int | None) -> bool:
    for line in commit.splitlines():
        if '"txn"' in line and app_id in line:
            txn = json.loads(line).get("txn", {})
            if txn.get("appId") == app_id and batch in (None, txn.get("version")):
                return True
    return False
