"""From topic to topic: `ottla.pipelines` beside Spark's own Kafka sink."""

from typing import Final

from bench.figures.comparison import Comparison, Taken
from bench.figures.delta import broker_of, cpu_us, create, fill, rate, run_job
from bench.measure import Bench, ClientError

WAYS: Final = {way: f"topic-{way}" for way in ("plain", "tuned", "ottla")}
ROWS: Final = 800_000
BATCH: Final = 100_000
PARTITIONS: Final = 2
WARM_UP: Final = 3


class Topic:
    """All rows of a topic, by each job into a topic of its own."""

    name = "topic"
    runs = 3
    settings = (
        f"{ROWS:,} JSON rows of about 250 B in {PARTITIONS} partitions, {BATCH:,} a batch, parsed"
        f" and written as JSON to a topic of {PARTITIONS} partitions, local[2], availableNow;"
        f" median over the batches without the first {WARM_UP}. Ottla's job writes each row once,"
        " a batch in a transaction; the plain and the tuned job (linger.ms=5, batch.size=1000000)"
        " are Spark's Kafka sink, which is at least once"
    )

    def __init__(self) -> None:
        self._comparison = Comparison(
            self.name, "rows/s", 1.0, WAYS, more_is_better=True, cpu_goal=1.0
        )
        self.measures = self._comparison.measures

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        batch = bench.amount(BATCH)
        rows = ROWS // BATCH * batch
        with broker_of(contestant, bench, PARTITIONS) as address:
            fill(address, "rows", rows, PARTITIONS)

            def run(job: str) -> Taken:
                create(address, job, PARTITIONS)
                found = run_job(job, {"max_rows": batch, "target": job}, address, "rows")
                if found["rows"] != rows:
                    raise ClientError(f"the topic has {found['rows']} rows of {rows}")
                return Taken(rate(found, WARM_UP), cpu_us(found, WARM_UP))

            return self._comparison.measure(run)
