"""At most one run on a checkpoint at a time.

`<checkpoint>/ottla-run.json`, one JSON object, replaced as a whole every BEAT_S seconds:

    {"version": 1, "host": "...", "numbers": "<where process numbers count>", "process": pid,
     "born": "<start time of that process>", "token": "<of this run>", "beats": n}

A run that ends deletes it. A crash leaves it: on the same host the next start sees that the
process is gone; on another host it watches whether the heartbeats continue. Two containers may have
one host name, and each its own process numbers, so `numbers` has the boot and the namespace of
these. A run that finds another token in it has lost the checkpoint and fails.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from ottla.pipelines.checkpoint.document import Document
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.locations import shown_location
from ottla.pipelines.spark.jvm.files import Files

log: Final = logging.getLogger("ottla.pipelines")

FILE: Final = "ottla-run.json"
BEAT_S: Final = 4.0
WATCH_S: Final = 2.5 * BEAT_S


def _parse(document: dict[str, Any]) -> dict[str, Any]:
    """Check that all is there by which another run is known."""
    known = {name: document[name] for name in ("host", "born", "token")}
    return document | known | {"process": int(document["process"]), "beats": int(document["beats"])}


_LEASE: Final[Document[dict[str, Any]]] = Document(
    FILE,
    _parse,
    dict,
    instead="make sure that no query runs on this checkpoint, then delete that file",
    if_damaged="Make sure that no query runs on this checkpoint, then delete that file",
)

# A run that ends in this process must not delete what the next one has written meanwhile.
_LOCK: Final = threading.Lock()
# The runs of this process, by token: whether each still runs.
_RUNS: Final[dict[str, Callable[[], bool]]] = {}


class Lease:
    """The right to run on a checkpoint."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._token = uuid.uuid4().hex
        self._beats = 0
        self._has_warned = False
        self._ended = threading.Event()
        # A heartbeat that comes after the release would leave a lease of nobody.
        self._beating = threading.Lock()

    def acquire(self, *, watch_s: float = WATCH_S) -> None:
        """Acquire the checkpoint. Raises PipelineError while another run has it.

        Waits up to `watch_s` where the last run was on another host and did not end cleanly.
        """
        self.check(watch_s=watch_s)
        with _LOCK:
            self._beat()
        found = self._read()
        if found is None or found.get("token") != self._token:
            raise PipelineError(self._taken(found))

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Acquire the checkpoint, and keep it while the block runs, however long that takes.

        Whether another run has taken it all the same, `check_kept` says. Raises PipelineError while
        another run has it.
        """
        self.acquire()
        try:
            self.keep(lambda: True, lambda reason: None)
            yield
        finally:
            self.release()

    def check(self, *, watch_s: float = WATCH_S) -> None:
        """Raise PipelineError while another run has the checkpoint; acquires nothing."""
        found = self._read()
        if found is not None and not _is_of_this_host(found):
            if self._moves(found, watch_s):
                raise PipelineError(self._taken(found))
        else:
            self._check_here(found)

    def check_here(self) -> None:
        """Raise PipelineError while another run of this host has the checkpoint; waits for nothing.

        A running query moves what a start compares, so this is looked at first.
        """
        self._check_here(self._read())

    def _check_here(self, found: dict[str, Any] | None) -> None:
        if found is None or not _is_of_this_host(found):
            return
        if found["process"] == os.getpid():
            runs = _RUNS.get(found["token"])
            if runs is not None and runs():
                raise PipelineError(self._taken(found))
        elif _born(found["process"]) not in (None, found["born"]):
            log.info("The last run on %s did not end cleanly", self._files.location)
        elif _born(found["process"]) is not None:
            raise PipelineError(self._taken(found))

    def keep(self, is_active: Callable[[], bool], lost: Callable[[str], None]) -> None:
        """Keep the checkpoint while the query starts and runs, then release it; returns at once.

        `lost` ends the query as failed; it is called, with the reason, when another run has taken
        the checkpoint.
        """
        _RUNS[self._token] = is_active
        name = f"ottla-lease-{self._token[:8]}"
        threading.Thread(target=self._keep, args=(is_active, lost), name=name, daemon=True).start()

    def renew(self) -> str | None:
        """Beat once; return why the run must end, None while it has the checkpoint."""
        with self._beating:
            return None if self._ended.is_set() else self._renew()

    def _renew(self) -> str | None:
        found = self._read()
        if found is not None and found.get("token") != self._token:
            where = shown_location(self._files.location)
            return (
                f"The checkpoint {where} was taken by {_who(found)}: two runs share it. This one "
                "ends, and its last batch may be written by the other one. Give each run a "
                "checkpoint of its own"
            )
        self._beat()
        return None

    def check_kept(self) -> None:
        """Check that no other run has had the checkpoint since it was acquired.

        A process that was stopped for longer than others watch for its heartbeats does not know
        that they took the checkpoint. Raises PipelineError.
        """
        found = self._read()
        if found is None or found.get("token") != self._token:
            where = shown_location(self._files.location)
            by = f" by {_who(found)}" if found else ""
            raise PipelineError(
                f"The checkpoint {where} was taken{by} while this run started, because it did not "
                "answer for a while. Nothing of its batch is written. Start again"
            )

    def release(self) -> None:
        """Release the checkpoint, unless another run has taken it."""
        self._ended.set()
        _RUNS.pop(self._token, None)
        with _LOCK, self._beating:
            try:
                found = self._read()
            except PipelineError as error:
                log.warning("%s", error)  # whose it is cannot be known: the next start asks
                return
            if found is not None and found.get("token") == self._token:
                self._files.delete(FILE)

    def _keep(self, is_active: Callable[[], bool], lost: Callable[[str], None]) -> None:
        from py4j.protocol import Py4JError

        try:
            while not self._ended.wait(BEAT_S) and is_active():
                if reason := self._renew_or_warn():
                    lost(reason)
                    return
            if not self._ended.is_set():
                self.release()
        except (Py4JError, OSError) as error:
            # Spark's JVM has ended, and the query with it; the file that stays names its process.
            log.debug("The lease on %s ends: %s", self._files.location, error)

    def _renew_or_warn(self) -> str | None:
        """Renew, unless the storage fails: the next heartbeat may find it well."""
        from py4j.protocol import Py4JJavaError

        try:
            reason = self.renew()
        except (Py4JJavaError, PipelineError) as error:
            if not self._has_warned:
                where = shown_location(self._files.location)
                words = str(error).splitlines()[0]
                log.warning(
                    "The checkpoint %s cannot be kept now, and after %.0f s another host may take "
                    "it: %s",
                    where,
                    WATCH_S,
                    words,
                )
            self._has_warned = True
            return None
        self._has_warned = False
        return reason

    def _beat(self) -> None:
        self._beats += 1
        document = {
            "host": socket.gethostname(),
            "numbers": _numbers(),
            "process": os.getpid(),
            "born": _born(os.getpid()),
            "token": self._token,
            "beats": self._beats,
        }
        _LEASE.write(self._files, document)

    def _read(self) -> dict[str, Any] | None:
        return _LEASE.read(self._files)

    def _moves(self, found: dict[str, Any], watch_s: float) -> bool:
        log.warning(
            "The last run on %s was on %s and did not end cleanly: watching for %.0f s whether "
            "it is still running",
            self._files.location,
            found["host"],
            watch_s,
        )
        until = time.monotonic() + watch_s
        while time.monotonic() < until:
            time.sleep(min(0.5, watch_s))
            now = self._read()
            if now is None:
                return False
            if (now["token"], now["beats"]) != (found["token"], found["beats"]):
                return True
        return False

    def _taken(self, found: dict[str, Any] | None) -> str:
        return _taken(shown_location(self._files.location), found)


def taken_here(checkpoint: Path) -> str | None:
    """Return why a local checkpoint is in use by another process of this host, None otherwise.

    It needs no Spark, and decides nothing: the start acquires the lease.
    """
    try:
        text = (checkpoint / FILE).read_text(encoding="utf-8")
        found = _LEASE.value(text, str(checkpoint / FILE))
        process, born = int(found["process"]), found["born"]
        is_here = _is_of_this_host(found) and process != os.getpid()
    except (OSError, PipelineError, ValueError, TypeError, KeyError):
        return None  # not there or damaged: the start says what is wrong
    if not is_here or born is None or _born(process) != born:
        return None
    return _taken(str(checkpoint), found)


def _taken(path: str, found: dict[str, Any] | None) -> str:
    return (
        f"The checkpoint {path} is in use by {_who(found)}. Stop that query first, or use another "
        "checkpoint"
    )


def _who(found: dict[str, Any] | None) -> str:
    return f"process {found['process']} on {found['host']}" if found else "another process"


def _is_of_this_host(found: dict[str, Any]) -> bool:
    """Tell whether the process of a lease has a number that means something here.

    A lease of a version that did not keep `numbers` is known by its host alone.
    """
    return bool(found["host"] == socket.gethostname()) and found.get("numbers") in (
        None,
        _numbers(),
    )


@functools.cache
def _numbers() -> str:
    """Return what the numbers of processes belong to: this boot and this namespace of them.

    Empty on a system without /proc.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _born(process: int) -> str | None:
    """Return when a process of this host started, None when there is no such process.

    The kernel's own clock ticks, so that a reused process id is recognized.
    """
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # it runs, as another user
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except FileNotFoundError:
        return ""  # a system without /proc
