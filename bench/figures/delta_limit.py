"""The physical limit beside Spark: confluent-kafka, pyarrow and deltalake in one Python process.

The project does not depend on them: they are installed into a separate environment in the cache.
"""

import json
import tempfile
from pathlib import Path

from bench import rdkafka
from bench.figures.delta import broker_of, fill
from bench.measure import Bench, ClientError, Measure
from components import packages

REQUIREMENTS = ("confluent-kafka==2.16.1", "pyarrow==26.0.1", "deltalake==1.6.6")
ROWS, BATCH = 800_000, 100_000
PROGRAM = Path(__file__).with_name("delta_limit_job.py")
MEASURE = "delta-bulk, without Spark"


class DeltaLimit:
    """The same rows and batches as `delta-bulk`; no checkpoint, no guarantee after a kill."""

    name = "delta-limit"
    runs = 3
    settings = (
        f"{ROWS:,} JSON rows of about 250 B in 2 partitions, {BATCH:,} a batch, each one commit;"
        f" {', '.join(REQUIREMENTS)}; median over the batches without the first"
    )
    measures = (Measure(MEASURE, "rows/s", more_is_better=True),)

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        rows = max(bench.amount(ROWS), 3 * BATCH)
        python = packages.python_environment("delta-limit", REQUIREMENTS)
        with (
            broker_of(contestant, bench, 2) as address,
            tempfile.TemporaryDirectory() as folder,
        ):
            fill(address, "rows", rows, 2)
            job = [str(python), str(PROGRAM), address, "rows", str(rows), str(BATCH), folder]
            found = json.loads(rdkafka.run(job).splitlines()[-1])
        if found["rows"] != rows:
            raise ClientError(f"the table has {found['rows']} rows of {rows}")
        return {MEASURE: found["rows_per_second"]}
