"""A request to stop, from any machine that reaches the broker.

It is a commit to the companion group `<group>.stop`, on each partition that the group has. Its
offset is 0, so that it does not count as having read anything; its metadata is

    {"ottla.stop": 1, "run": "9f2c41d0", "by": "anna@laptop", "at_ms": ...}

The run reads that group every few seconds. It obeys a request that names this very run and then
deletes the group; a request for an earlier run is deleted at the next start. A crash in between
leaves the group with a request that no later run obeys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ottla.pipelines.kafka.committed import read_document
from ottla.pipelines.progress.group import Commit, Group, Partition

SUFFIX: Final = "stop"
VERSION: Final = 1
MAX_NAME_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class StopRequest:
    """`run` is the id of the run that is to stop; `by` says who asked."""

    run: str
    by: str
    at_ms: int

    def metadata(self) -> str:
        document = {
            "ottla.stop": VERSION,
            "run": self.run,
            "by": self.by[:MAX_NAME_CHARS],
            "at_ms": self.at_ms,
        }
        return json.dumps(document, separators=(",", ":"))


def read_request(metadata: str) -> StopRequest | None:
    """Return the request in a commit's metadata, None where there is none."""
    document = read_document(metadata)
    if document is None or document.get("ottla.stop") != VERSION:
        return None
    run, by, at_ms = document.get("run"), document.get("by"), document.get("at_ms")
    if not isinstance(run, str) or not isinstance(by, str) or not isinstance(at_ms, int):
        return None
    return StopRequest(run, by[:MAX_NAME_CHARS], at_ms)


def put_request(group: Group, partitions: Iterable[Partition], request: StopRequest) -> None:
    """Ask a run to stop; `partitions` are those of its topics. Raises GroupError."""
    commit = Commit(0, request.metadata())
    group.companion(SUFFIX).commit(dict.fromkeys(partitions, commit))


def find_request(companion: Group, partition: Partition) -> StopRequest | None:
    """Return the request in the companion group, on this partition. Raises GroupError."""
    found = [read_request(commit.metadata) for commit in companion.read([partition]).values()]
    return next((one for one in found if one), None)
