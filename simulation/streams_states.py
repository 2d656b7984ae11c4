"""The states of a process's tasks, as offsets in their changelogs, and what a thread says of them.

A folder keeps them when tasks go, and when the process ends if its successor has the same id. A
thread says all that it knows when it joins or after a failure, and later what has changed, at most
once per interval (Kafka's StreamsGroupHeartbeatRequestManager, version 1 of the request). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final, NamedTuple, TypeAlias

from simulation.streams_ledger import Task
from simulation.streams_topology import KEEPS

Offsets: TypeAlias = dict[Task, int]
SAYS_SHARE, SAYS_AGAIN_SHARE = 0.7, 0.3
"""Of what has changed, and of what has not. Kafka's client never says the latter: a coordinator
that begins again on the same broker would not hear of it."""
MAX_GROWTH: Final = 5


class Folder:
    """The states on the disk of a process, which its threads share."""

    def __init__(self) -> None:
        self.offsets: Offsets = {}


class Said(NamedTuple):
    """What one heartbeat says; None: nothing of that."""

    offsets: Offsets | None = None
    end_offsets: Offsets | None = None


NOTHING_SAID: Final = Said()


class States:
    """Of one thread."""

    def __init__(self, folder: Folder, random: Random) -> None:
        self._folder = folder
        self._random = random
        self._last: Said = NOTHING_SAID
        """What it said last; None: it says that in its next heartbeat."""
        self.heard = Said({}, {})
        """What the group must know."""

    def grow(self, has: Iterable[Task]) -> None:
        """Tasks that keep a state work."""
        offsets = self._folder.offsets
        for task in sorted(has):
            if task[0] == KEEPS:
                offsets[task] = offsets.get(task, 0) + self._random.randrange(MAX_GROWTH)

    def all(self) -> Said:
        """The whole of it, of a member that joins or had no answer."""
        self._last = self._now()
        return self._last

    def changed(self) -> Said:
        """What is new since the last time, mostly."""
        now, last = self._now(), self._last
        said = Said(
            *(
                new
                if self._random.random() < (SAYS_AGAIN_SHARE if new == old else SAYS_SHARE)
                else None
                for new, old in zip(now, last, strict=True)
            )
        )
        self._last = _updated(last, said)
        return said

    def was_heard(self, said: Said, *, joined: bool) -> None:
        """The heartbeat was answered without an error. Who joins has said nothing before."""
        self.heard = _updated(Said({}, {}) if joined else self.heard, said)

    def _now(self) -> Said:
        offsets = dict(self._folder.offsets)
        return Said(offsets, {task: offset + 1 for task, offset in offsets.items()})


def _updated(before: Said, said: Said) -> Said:
    return Said(
        *(old if new is None else new for old, new in zip(before, said, strict=True)),
    )
