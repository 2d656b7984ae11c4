"""Folders in memory, and the steps at which a process can be killed or overtaken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.pipelines.checkpoint import lease


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


class Steps:
    """The durable steps of all processes: `kill_at` and `meanwhile_at` count from now on."""

    def __init__(self) -> None:
        self.kill_at = -1
        self.meanwhile_at = -1
        self.meanwhile: Callable[[], None] | None = None
        self.after_commit: Callable[[Any], None] | None = None
        self.taken = 0

    def committed(self, process: Any) -> None:
        """After a commit of a process, before it looks at what others have committed."""
        if self.after_commit is not None:
            work, self.after_commit = self.after_commit, None
            work(process)
        if process.dead:
            raise Killed

    def step(self, process: Any, *, alone: bool = False) -> None:
        """Before a durable step of a process; `alone`: no other process can run now."""
        if process.dead:
            raise Killed
        self.taken += 1
        if self.kill_at == 0:
            self.kill_at = -1
            process.dead = True
            raise Killed
        if self.kill_at > 0:
            self.kill_at -= 1
        if alone:
            return
        if self.meanwhile_at == 0 and self.meanwhile is not None:
            self.meanwhile_at = -1
            work, self.meanwhile = self.meanwhile, None
            kill_at, self.kill_at = self.kill_at, -1
            after, self.after_commit = self.after_commit, None
            work()
            self.kill_at, self.after_commit = kill_at, after
        elif self.meanwhile_at > 0:
            self.meanwhile_at -= 1


class MemoryFiles:
    """`spark.jvm.files.Files` in memory: each change is one step."""

    def __init__(self, spark: Any, folder: str) -> None:
        self._spark = spark
        self._folder = folder.removeprefix("file:").rstrip("/")
        self.location = f"file:{self._folder}"

    @property
    def _texts(self) -> dict[str, str]:
        if self._spark.dead:
            raise Killed
        texts: dict[str, str] = self._spark.world.folders.setdefault(self._folder, {})
        return texts

    def _step(self, name: str) -> None:
        # The runs of the model are one process, in which a lock keeps one lease from the other.
        self._spark.world.steps.step(self._spark, alone=name == lease.FILE)

    def exists(self, name: str = "") -> bool:
        return not name or any(one == name or one.startswith(f"{name}/") for one in self._texts)

    def is_file(self) -> bool:
        return False

    def names(self, name: str = "") -> list[str]:
        start = f"{name}/" if name else ""
        inside = (one[len(start) :] for one in self._texts if one.startswith(start))
        return sorted({one.split("/")[0] for one in inside})

    def read(self, name: str) -> str | None:
        return self._texts.get(name)

    def write(self, name: str, text: str) -> None:
        self._step(name)
        self._texts[name] = text

    def create(self, name: str, text: str) -> bool:
        """Write a file that is not there yet, as Spark does with its logs; False where it is."""
        self._step(name)
        return self._texts.setdefault(name, text) is text

    def delete(self, name: str) -> None:
        self._step(name)
        texts = self._texts
        for one in [one for one in texts if one == name or one.startswith(f"{name}/")]:
            del texts[one]

    def move(self, name: str, to: str) -> None:
        self._step(name)
        texts = self._texts
        for one in [one for one in texts if one == name or one.startswith(f"{name}/")]:
            texts[to + one[len(name) :]] = texts.pop(one)
