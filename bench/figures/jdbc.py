"""Kafka to PostgreSQL: `ottla.pipelines` beside Spark's own JDBC writer, all appending."""

from typing import Final

from components.postgres import Postgres, find_programs

from bench.figures.comparison import Comparison, Taken
from bench.figures.delta import broker_of, cpu_us, fill, rate, run_job
from bench.measure import Bench, ClientError

WAYS: Final = {way: f"jdbc-{way}" for way in ("plain", "tuned", "ottla")}
ROWS: Final = 800_000
BATCH: Final = 100_000
WARM_UP: Final = 3


class Jdbc:
    """All rows of a topic, each job into a server of its own."""

    name = "jdbc"
    runs = 3
    settings = (
        f"{ROWS:,} JSON rows of about 250 B in 2 partitions, {BATCH:,} a batch, local[2],"
        " availableNow, appended to a table of PostgreSQL without indexes (fsync off) on the same"
        f" machine; median over the batches without the first {WARM_UP}. The plain and"
        " the tuned job (batches of 10,000 rows that the driver rewrites) do not promise each row"
        " once"
    )

    def __init__(self) -> None:
        self._comparison = Comparison(
            self.name, "rows/s", 1.0, WAYS, more_is_better=True, cpu_goal=1.0
        )
        self.measures = self._comparison.measures

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        programs = find_programs()
        if programs is None:
            raise ClientError("PostgreSQL is not installed. On Debian: apt-get install postgresql")
        batch = bench.amount(BATCH)
        rows = ROWS // BATCH * batch
        with broker_of(contestant, bench, 2) as address:
            fill(address, "rows", rows, 2)

            def run(job: str) -> Taken:
                server = Postgres(programs)
                try:
                    server.make()
                    scenario = {"max_rows": batch, "url": server.url}
                    found = run_job(job, scenario, address, "rows")
                finally:
                    server.stop()
                if found["rows"] != rows:
                    raise ClientError(f"the table has {found['rows']} rows of {rows}")
                return Taken(rate(found, WARM_UP), cpu_us(found, WARM_UP))

            return self._comparison.measure(run)
