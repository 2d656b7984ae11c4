"""The test of the figure `test-kit` with kfake, franz-go's imitation of a cluster, in Go."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from bench import rdkafka
from bench.figures.test_kit_job import FURTHER_TESTS
from bench.measure import Bench, ClientError, Measure

SOURCE: Final = Path(__file__).parents[1] / "kfake"
BUILD_SECONDS: Final = 600.0
JOB_SECONDS: Final = 60.0


class Kfake:
    """kfake stands beside both brokers and depends on neither."""

    name = "test-kit-kfake"
    runs = None
    settings = (
        "a program in Go with kfake and the client kgo in one process, compiled before: its start,"
        " that of the cluster, and the test of test-kit; a further test is the median of"
        f" {FURTHER_TESTS}, each with a new topic. It does not depend on the column"
    )
    measures = (
        Measure("first test, kfake", "s", more_is_better=False),
        Measure("further test, kfake", "ms", more_is_better=False),
    )

    def measure(self, _contestant: str, _bench: Bench) -> dict[str, float]:
        go = shutil.which("go")
        if go is None:
            raise ClientError(
                "kfake is in Go, and there is no go on the PATH: install Go 1.26 or newer"
            )
        with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
            program = Path(folder) / "job"
            rdkafka.run([go, "build", "-C", str(SOURCE), "-o", str(program)], BUILD_SECONDS)
            first_s, further_ms = run(program)
        return {"first test, kfake": first_s, "further test, kfake": further_ms}


def run(program: Path) -> tuple[float, float]:
    """Seconds until the first test was done, and ms of a further one. Raises ClientError."""
    began_s = time.monotonic()
    command = ["timeout", f"{JOB_SECONDS:.0f}", str(program), str(FURTHER_TESTS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        first = job.stdout.readline()
        first_s = time.monotonic() - began_s
        further = job.stdout.read()
    if job.returncode or first != "first\n":
        raise ClientError(f"the job of kfake ended with {job.returncode}: {first}{further}")
    return first_s, float(further)
