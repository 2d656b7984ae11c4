"""The state of a run from the first moment of its process, before its query commits its own.

It is kept in the companion group `<group>.run`, as a commit of offset 0 on the topic's first
partition, so that it does not count as having read anything. Its metadata is that of `state`,
with the run in state `starting`, or `failed` or `stopped` where it came no further. It is deleted
when the pipeline's own group has the state of the run. A crash leaves it; its age then shows that
the run is gone, and the next start overwrites it.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from collections.abc import Mapping
from typing import Final

from ottla.pipelines.progress.commits import RENEW_S, Delivered, GroupCommitter
from ottla.pipelines.progress.group import Group, GroupError
from ottla.pipelines.progress.offset_metadata import (
    OffsetMetadata,
    Run,
    State,
    read_offset_metadata,
)

log: Final = logging.getLogger("ottla.pipelines")

SUFFIX: Final = "run"
COMMIT_WITHIN_S: Final = 5.0


def new_run(state: State) -> Run:
    """Return the state of a run that begins now, in this process."""
    now_ms = int(time.time() * 1_000)
    return Run(
        id=uuid.uuid4().hex[:8],
        state=state,
        host=socket.gethostname(),
        pid=os.getpid(),
        since_ms=now_ms,
        seen_ms=now_ms,
        every_s=RENEW_S,
    )


class StartingRun:
    """A run whose process has started and whose query has not."""

    def __init__(self, settings: Mapping[str, str], group: str, topic: str, name: str) -> None:
        self.run = new_run("starting")
        self._group = Group(settings, group).companion(SUFFIX)
        self._committer = GroupCommitter(self._group, run=self.run)
        self._committer.put(Delivered(name, "", None, {topic: {0: 0}}))
        self._has_ended = False

    def handed_over(self, committer: GroupCommitter) -> None:
        """The pipeline's own group has the state from now on, by this committer."""
        if self._has_ended:
            return
        self._has_ended = True
        self._committer.close()
        if committer.drain(COMMIT_WITHIN_S):
            try:
                self._group.delete()
            except GroupError as error:
                log.debug("The group %s cannot be deleted: %s", self._group.name, error)

    def end(self, state: State, *, failure: str | None = None, by: str | None = None) -> None:
        """The run ends before its query has started."""
        if self._has_ended:
            return
        self._has_ended = True
        self._committer.update(state=state, failure=failure, by=by)
        self._committer.drain(COMMIT_WITHIN_S)
        self._committer.close()


def read_starting(group: Group) -> OffsetMetadata | None:
    """Return what the last start left in the companion of a group. Raises GroupError."""
    commits = group.companion(SUFFIX).read_all().values()
    found = [read_offset_metadata(commit.metadata) for commit in commits]
    runs = [(one.run.seen_ms, one) for one in found if one is not None and one.run is not None]
    return max(runs, key=lambda run: run[0], default=(0, None))[1]
