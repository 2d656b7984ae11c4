"""The CPU time of this process and its children, sampled, to be asked for any moment later."""

import bisect
import os
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import TracebackType

from components.child import cpu_seconds_in

STEP_SECONDS = 0.2


def tree_cpu_seconds(root: int, proc: Path = Path("/proc")) -> float:
    """User and system time of a process, its living descendants, and the children that each of
    them waited for.
    """
    stats: dict[int, str] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        try:
            stat = (proc / name / "stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        stats[int(name)] = stat
        children[int(stat.rpartition(")")[2].split()[1])].append(int(name))
    seconds, left = 0.0, [root]
    while left:
        pid = left.pop()
        if pid in stats:
            seconds += cpu_seconds_in(stats[pid])
        left += children[pid]
    return seconds


class CpuOverTime:
    """Samples while it is entered. A child that ends is still counted, once its parent waited."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._seconds: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "CpuOverTime":
        self._take()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._take()

    def _sample(self) -> None:
        while not self._stop.wait(STEP_SECONDS):
            self._take()

    def _take(self) -> None:
        self._seconds.append(tree_cpu_seconds(os.getpid()))
        self._times.append(time.time())

    def at(self, moment: float) -> float:
        """CPU seconds at a time (seconds since 1970), between samples by interpolation."""
        after = bisect.bisect_left(self._times, moment)
        if after == 0:
            return self._seconds[0]
        if after == len(self._times):
            return self._seconds[-1]
        (t0, t1), (s0, s1) = (
            (values[after - 1], values[after]) for values in (self._times, self._seconds)
        )
        return s0 + (s1 - s0) * (moment - t0) / (t1 - t0)
