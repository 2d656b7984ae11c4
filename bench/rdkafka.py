"""librdkafka's own rdkafka_performance, built from the npm package that ships its source."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.measure import ClientError
from components import packages

PACKAGE = "node-rdkafka@3.6.1"
# The tool sets a linger of a second, three retries and a longer backoff. These options restore
# librdkafka's defaults.
DEFAULTS = ("-X", "linger.ms=5", "-X", "message.send.max.retries=2147483647")
CLIENT_SECONDS = 600
PRODUCED = re.compile(
    r"(\d+) delivered \(offset -?\d+, (\d+) failed\) in (\d+)ms: (\d+) msgs/s and ([\d.]+) MB/s"
)
CONSUMED = re.compile(
    r"% (\d+) messages \((\d+) bytes\) consumed in (\d+)ms: (\d+) msgs/s \(([\d.]+) MB/s\)"
)


def built() -> Path:
    """The tool, fetched and built if the cache has none (about a minute).

    Raises packages.PackageError.
    """
    tool = "rdkafka_performance"
    needs = packages.OF_LIBRDKAFKA
    # The cache may hold an older build without zstd under the tool's own name.
    built = packages.librdkafka(f"{tool}-zstd", PACKAGE, needs, "-C", "examples", tool)
    return built / "examples" / tool


def run(
    command: Sequence[str], seconds: float = CLIENT_SECONDS, codes: Sequence[int] = (0,)
) -> str:
    """Run a client to its end; return its output. Raises ClientError, also for an exit code other
    than these.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as fault:
        raise ClientError(f"{command[0]} did not end in {seconds:.0f} s") from fault
    if done.returncode not in codes:
        raise ClientError(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-1500:]}")
    return done.stdout


def produced(said: str, count: int = 0) -> tuple[float, float]:
    """MB/s and records/s of a producer, from its last line. Raises ClientError if records were lost
    or fewer than `count` were delivered.
    """
    found = PRODUCED.findall(said)
    if not found or found[-1][1] != "0" or int(found[-1][0]) < count:
        raise ClientError(f"the producer did not deliver everything:\n{said[-1500:]}")
    return float(found[-1][4]), float(found[-1][3])


def consumed(said: str, count: int) -> tuple[float, float]:
    """MB/s and records/s of a consumer, from its last line. Raises ClientError if some are lost."""
    found = CONSUMED.findall(said)
    if not found or int(found[-1][0]) < count:
        raise ClientError(f"the consumer did not get {count} records:\n{said[-1500:]}")
    return float(found[-1][4]), float(found[-1][3])


def produce(
    tool: Path,
    address: str,
    topic: str,
    count: int,
    size: int,
    *options: str,
    codec: str = "none",
) -> tuple[float, float]:
    """Write `count` records of `size` bytes to partition 0, acks=all; MB/s (uncompressed) and
    records/s."""
    command = [str(tool), "-P", "-t", topic, "-p", "0", "-s", str(size), "-c", str(count)]
    return produced(run([*command, "-z", codec, "-a", "-1", "-b", address, *DEFAULTS, *options]))


def consume(tool: Path, address: str, topic: str, count: int, *options: str) -> tuple[float, float]:
    """Read `count` records of partition 0 from the beginning; MB/s and records/s."""
    command = [str(tool), "-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", str(count)]
    return consumed(run([*command, "-b", address, *options]), count)
