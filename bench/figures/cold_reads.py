"""End-to-end latency while another consumer reads records that are not in the page cache."""

import os
import subprocess
import threading
import time
from pathlib import Path

from bench import rdkafka
from bench.brokers import Broker, running
from bench.figures.latency import RATE, stream
from bench.figures.start import first_produce
from bench.measure import Bench, ClientError, Measure

BYTES = 5_000_000_000
SIZE = 1000
MIN_READ_BYTES = 100_000_000


class ColdReads:
    """The stream of `latency`, beside a consumer that reads 5 GB from the disk."""

    name = "cold-reads"
    runs = None
    settings = (
        f"5 GB of {SIZE} B records are written to another topic; a consumer reads them from the"
        " beginning, again and again, each time dropped from the page cache before (fsync,"
        " posix_fadvise DONTNEED); beside it latency is measured as for `latency`. Meanwhile: what"
        " the broker reads from the disk"
    )
    measures = (
        Measure("latency p50 beside cold reads", "ms", more_is_better=False, ratio=1.0),
        Measure("latency p99 beside cold reads", "ms", more_is_better=False, ratio=1.0),
        Measure("cold reads meanwhile", "MB/s", more_is_better=True),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        tool = bench.rdkafka_performance
        with running(contestant, bench.jars, prefix=bench.prefix) as broker:
            first_produce(broker.address, "stream", 0)
            count = bench.amount(BYTES // SIZE)
            rdkafka.produce(tool, broker.address, "old", count, SIZE)
            with ColdConsumer(tool, broker, count) as consumer:
                found = (*stream(bench, broker.address, RATE), consumer.rate())
        return dict(zip((measure.name for measure in self.measures), found, strict=True))


class ColdConsumer:
    """A context manager that reads topic `old` from the disk repeatedly."""

    def __init__(self, tool: Path, broker: Broker, count: int) -> None:
        self._files = [
            path for path in broker.folder.rglob("*.log") if path.parent.name.startswith("old-")
        ]
        self._command = [str(tool), "-C", "-t", "old", "-p", "0", "-b", broker.address]
        self._command += ["-o", "beginning", "-c", str(count)]
        self._broker = broker
        self._process: subprocess.Popen[bytes] | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._before = 0
        self._began = 0.0

    def __enter__(self) -> "ColdConsumer":
        if not self._files:
            raise ClientError(f"no log of topic old below {self._broker.folder}")
        self._before = read_bytes(self._broker.child.pid)
        self._began = time.monotonic()
        self._thread.start()
        return self

    def _read(self) -> None:
        while not self._ends.is_set():
            for path in self._files:
                drop(path)
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            while self._process.poll() is None and not self._ends.wait(0.1):
                pass
            self._process.kill()
            self._process.wait()

    def rate(self) -> float:
        """The MB/s that the broker has read from the disk. Raises ClientError if that is nothing:
        the records were in memory."""
        size_bytes = read_bytes(self._broker.child.pid) - self._before
        if size_bytes < MIN_READ_BYTES:
            raise ClientError("the old records were read from memory: the figure means nothing")
        return size_bytes / (time.monotonic() - self._began) / 1e6

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


def drop(path: Path) -> None:
    """Sync a file and drop it from the page cache."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def read_bytes(pid: int) -> int:
    """The bytes that the process has read from a disk so far."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))
