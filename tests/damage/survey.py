"""The survey of damaged files: what is damaged, and what must come of it.

Each kind of file of a data folder, each kind of damage, after a clean stop and after SIGKILL. The
outcome is one of these, and nothing else:

- the same answers as without the damage;
- other answers about the damaged partition only, and a line that names the file or its folder;
- a batch whose checksum is wrong, which the client notices;
- a start that is refused with one line that names the file.
"""

from __future__ import annotations

import asyncio
import builtins
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from tests.conftest import NodeCall
from tests.damage.answers import Answers, ask_all, write_one_each
from tests.damage.damages import DAMAGES, UNREADABLE, Damage
from tests.damage.data_folder import build, node_on

from ottla.cluster.errors import StartError
from ottla.config import ConfigError
from ottla.coordination.embedded_store import StoreError
from ottla.log.errors import DataFolderError
from ottla.protocol.errors import ApiError

REFUSALS: Final = (ConfigError, DataFolderError, StartError, StoreError, ApiError, OSError)
STOPS: Final = ("killed", "stopped")
WITHIN_S: Final = 60
EACH_THIRD: Final = 3
"""`make test` runs one of three cases: each file, and each damage, after either stop."""


class File(NamedTuple):
    """A kind of file: its path, and one of the same kind."""

    name: str
    other: str
    only: str = ""
    """`stopped` or `killed` if the file is only in that folder."""


SEGMENTS: Final = {0: 28, 30: 42, 60: 14}
"""Of plain-0: its first, one below the recovery point, and the last. And one of plain-1 with other
offsets: Kafka's format has no name of the partition, so another one's segment with the same offsets
is a sound file."""


def _of_segment(base: int, suffix: str) -> File:
    return File(f"plain-0/{base:020}{suffix}", f"plain-1/{SEGMENTS[base]:020}{suffix}")


FILES: Final = (
    *(
        _of_segment(base, suffix)
        for suffix in (".log", ".index", ".timeindex")
        for base in SEGMENTS
    ),
    File(f"transactions-0/{2:020}.txnindex", f"transactions-0/{8:020}.txnindex"),
    File(f"transactions-0/{14:020}.txnindex", f"transactions-0/{8:020}.txnindex"),
    _of_segment(30, ".snapshot"),
    _of_segment(60, ".snapshot"),
    File(f"plain-0/{72:020}.snapshot", f"plain-0/{60:020}.snapshot", "stopped"),
    File("plain-0/leader-epoch-checkpoint", "compacted-0/leader-epoch-checkpoint"),
    File("plain-0/partition.metadata", "compacted-0/partition.metadata"),
    File(f"plain-0/{60:020}.timeline", f"plain-1/{42:020}.timeline"),
    File("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"),
    File("log-start-offset-checkpoint", "recovery-point-offset-checkpoint"),
    File("replication-offset-checkpoint", "log-start-offset-checkpoint"),
    File("cleaner-offset-checkpoint", "recovery-point-offset-checkpoint"),
    File("meta.properties", "log-start-offset-checkpoint"),
    File(".kafka_cleanshutdown", "log-start-offset-checkpoint", "stopped"),
    File("coordination.sqlite", "meta.properties"),
    File("coordination.sqlite-wal", "meta.properties", "killed"),
    File(".lock", "meta.properties"),
)


UNKNOWABLE: Final = {("killed", f"transactions-0/{2:020}.txnindex", "removed")}
"""A segment without aborted transactions has no such file, and only a clean stop notes the sizes.
Below the recovery point no batch is read to find out."""


class Case(NamedTuple):
    """One damaged file. `how`: one of STOPS."""

    how: str
    file: File
    damage: Damage
    is_sampled: bool

    def __str__(self) -> str:
        return f"{self.how} {self.file.name} {self.damage.name}"

    @property
    def partition(self) -> str:
        """The only one that may be harmed; empty for a file about all of them."""
        return self.file.name.partition("/")[0] if "/" in self.file.name else ""


CASES: Final = [
    Case(how, file, damage, (file_number + number + how_number) % EACH_THIRD == 0)
    for file_number, file in enumerate(FILES)
    for number, damage in enumerate(DAMAGES)
    for how_number, how in enumerate(STOPS)
    if file.only in ("", how) and (how, file.name, damage.name) not in UNKNOWABLE
]


class Seen(NamedTuple):
    """What a broker answers, and where it appends."""

    answers: Answers
    written: dict[str, Any]


class Folders(NamedTuple):
    """The sound folders, and what a broker answers on each, by stop."""

    root: Path
    seen: dict[str, Seen]


async def prepare(root: Path) -> Folders:
    """Build the folders, and ask a broker on a copy of each."""
    await build(root, NodeCall)
    seen = {}
    for how in STOPS:
        copy = root / f"sound-{how}"
        shutil.copytree(root / how, copy)
        seen[how] = await seen_on(copy)
        shutil.rmtree(copy)
    return Folders(root, seen)


async def seen_on(folder: Path) -> Seen:
    """Starts a broker, asks and writes, and stops it. Raises REFUSALS."""
    async with asyncio.timeout(WITHIN_S):
        node = node_on(folder)
        await node.start()
        try:
            call = NodeCall(node)
            return Seen(await ask_all(call), await write_one_each(call))
        finally:
            await node.close()


def damage(case: Case, folders: Folders, data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make `data` a folder with this damage; returns the file's path."""
    shutil.copytree(folders.root / case.how, data)
    path = data / case.file.name
    case.damage.apply(path, data / case.file.other)
    if case.damage is UNREADABLE:
        _make_unreadable(path, monkeypatch)
    return path


def check_told(case: Case, found: Seen, sound: Seen, said: Sequence[str]) -> None:
    """Nothing else is harmed, and nothing in silence. `said`: the broker's warnings and errors."""
    differing = {
        name
        for name, answer in found.answers.topics.items()
        if answer != sound.answers.topics[name]
        or found.written.get(name) != sound.written.get(name)
    }
    part, file = case.partition, case.file.name.rpartition("/")[2]
    if part:
        assert differing <= {part}, "another partition was harmed"
    is_told = any(file in line or (part and f"/{part}" in line) for line in said)
    is_noticed = found.answers.corrupt == {part}
    assert not differing or is_told or is_noticed, f"silent: {differing}; {said}"


def check_kept(before: Seen, found: Seen) -> None:
    """What was answered and written on the damaged folder is there after a clean stop."""
    for name, (error, offset) in before.written.items():
        known, end, _ = before.answers.topics[name]["records"]
        records, _, _ = found.answers.topics[name]["records"]
        assert records[: len(known)] == known
        if (error, end) == ("none", "none"):
            assert records[-1][0] == offset


def _make_unreadable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As without the permission, also for root."""
    right_open, right_os_open = builtins.open, os.open

    def refused(name: Any) -> bool:
        return isinstance(name, (str, os.PathLike)) and os.fspath(name) == str(path)

    def open_file(name: Any, *how: Any, **more: Any) -> Any:
        if refused(name):
            raise PermissionError(13, "Permission denied", str(path))
        return right_open(name, *how, **more)

    def os_open(name: Any, *how: Any, **more: Any) -> Any:
        if refused(name):
            raise PermissionError(13, "Permission denied", str(path))
        return right_os_open(name, *how, **more)

    monkeypatch.setattr(builtins, "open", open_file)
    monkeypatch.setattr(os, "open", os_open)
