"""Child processes that never outlive this process, even after a failed test, Ctrl-C or SIGKILL.

On Linux the kernel kills the child when its parent dies (prctl PR_SET_PDEATHSIG). The parent is the
*thread* that started the child, so one thread starts all children and lives as long as this
process. On other systems an exit handler ends them; it does not run after SIGKILL.

Each child has its own session. Ctrl-C at a terminal therefore reaches only this process, which
ends the children in its own order.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Final

from ottla.testing.errors import KitError

MAX_PAUSE_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.001
_PR_SET_PDEATHSIG: Final = 1
# Loaded before any fork: a forked child must not import.
_LIBC: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

_Job = tuple[Callable[[], "subprocess.Popen[bytes]"], Future["subprocess.Popen[bytes]"]]
_jobs: SimpleQueue[_Job] = SimpleQueue()
_starter_lock: Final = threading.Lock()
_starter: threading.Thread | None = None
_running: Final[set[subprocess.Popen[bytes]]] = set()


def start_child(
    arguments: Sequence[str],
    *,
    output: Path,
    errors: Path | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program; append its stdout to the file `output` and its stderr to `errors`.

    Raises OSError when the program cannot be started.
    """
    parent = os.getpid()

    def popen() -> subprocess.Popen[bytes]:
        with output.open("ab") as out:
            if errors is None:
                return _popen(arguments, out, subprocess.STDOUT, folder, environment, parent)
            with errors.open("ab") as err:
                return _popen(arguments, out, err, folder, environment, parent)

    done: Future[subprocess.Popen[bytes]] = Future()
    _start_starter()
    _jobs.put((popen, done))
    child = done.result()
    _running.difference_update([each for each in _running if each.poll() is not None])
    _running.add(child)
    return child


def pause_child(child: subprocess.Popen[bytes]) -> None:
    """SIGSTOP, and wait until every thread of the child has stopped.

    The signal alone returns before that: a thread on another processor may still answer a request
    that is sent after it. Raises KitError if the child runs on for MAX_PAUSE_S.
    """
    child.send_signal(signal.SIGSTOP)
    if sys.platform == "darwin":
        return  # without waitid
    options = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
    end = time.monotonic() + MAX_PAUSE_S
    try:
        while os.waitid(os.P_PID, child.pid, options) is None:
            if time.monotonic() > end:
                raise KitError(f"process {child.pid} runs {MAX_PAUSE_S:.0f} s after SIGSTOP")
            time.sleep(_LOOK_AGAIN_S)
    except ChildProcessError:
        return  # it has ended


def _popen(
    arguments: Sequence[str],
    output: IO[bytes],
    errors: IO[bytes] | int,
    folder: Path | None,
    environment: Mapping[str, str] | None,
    parent: int,
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(arguments),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        cwd=folder,
        env=environment,
        start_new_session=True,
        preexec_fn=None if _LIBC is None else lambda: _die_with(parent),
    )


def _die_with(parent: int) -> None:
    assert _LIBC is not None
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent died before prctl.
        os._exit(1)


def _start_starter() -> None:
    global _starter
    with _starter_lock:
        if _starter is None or not _starter.is_alive():
            _starter = threading.Thread(target=_work, name="ottla-children", daemon=True)
            _starter.start()


def _work() -> None:
    while True:
        popen, done = _jobs.get()
        try:
            done.set_result(popen())
        except Exception as error:  # noqa: BLE001 - the caller gets it
            done.set_exception(error)


@atexit.register
def _end_children() -> None:
    for child in _running:
        if child.poll() is None:
            child.kill()
