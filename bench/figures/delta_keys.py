"""Tables with keys: an upsert beside a MERGE by hand, and a history beside the upsert."""

from typing import Any, Final

from confluent_kafka import Producer

from bench.figures.delta import (
    FLUSH_SECONDS,
    NOTE,
    Comparison,
    batch_time,
    broker_of,
    rate,
    run_job,
)
from bench.figures.delta_job import row
from bench.measure import Bench, ClientError

PLAIN_UPSERT, UPSERT, HISTORY = "upsert-plain", "upsert-ottla", "history-ottla"
PARTITIONS: Final = 2
KEYS: Final = 200_000
ROWS: Final = 700_000
BATCH: Final = 100_000
WARM_UP: Final = 3

SETTINGS = (
    f"{ROWS:,} JSON rows of about 250 B with {KEYS:,} keys, all of a key in one of {PARTITIONS}"
    f" partitions, {BATCH:,} a batch, local[2], availableNow; median over the batches without the"
    f" first {WARM_UP}"
)


def key_of(number: int, keys: int) -> int:
    """The key of a row: each comes once before one comes again, and neighbours lie far apart.

    `keys` is a multiple of 1,000; the step has no divisor in common with those of the figures.
    """
    return number * (618 * (keys // 1_000) + 1) % keys


def fill(address: str, topic: str, rows: int, keys: int) -> None:
    """Write the rows, each key to one partition. Raises ClientError."""
    producer = Producer({"bootstrap.servers": address, "queue.buffering.max.messages": 1_000_000})
    for number in range(rows):
        key = key_of(number, keys)
        while True:
            try:
                producer.produce(topic, row(key, NOTE), partition=key % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(FLUSH_SECONDS):
        raise ClientError(f"not all rows of {topic} were taken")


class _Keyed:
    """One topic, taken by two jobs in turn."""

    runs = 3
    settings = SETTINGS

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self.measures = comparison.measures

    def value(self, found: dict[str, Any]) -> float:
        raise NotImplementedError

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        batch = bench.amount(BATCH)
        rows, keys = ROWS // BATCH * batch, KEYS // BATCH * batch
        with broker_of(contestant, bench, PARTITIONS) as address:
            fill(address, "rows", rows, keys)

            def run(job: str) -> float:
                found = run_job(job, {"max_rows": batch}, address, "rows")
                expected = rows if job == HISTORY else keys
                if found["rows"] != expected:
                    raise ClientError(f"the table has {found['rows']} rows of {expected}")
                return self.value(found)

            return self._comparison.measure(run)


class Upsert(_Keyed):
    """The last row of each key: `ottla.pipelines` beside the MERGE by hand.

    A batch of the MERGE by hand takes half a minute, so there are fewer runs.
    """

    name = "delta-upsert"
    runs = 2

    def __init__(self) -> None:
        names = ("delta-upsert, plain", "delta-upsert, ottla", "delta-upsert, share")
        ways = (PLAIN_UPSERT, UPSERT)
        super().__init__(
            Comparison(self.name, "rows/s", 1.5, more_is_better=True, ways=ways, names=names)
        )

    def value(self, found: dict[str, Any]) -> float:
        return rate(found, WARM_UP)


class LargeUpsert:
    """A large table of which each batch updates 1 %, spread over the whole table.

    A batch of the MERGE by hand rewrites the table, which takes minutes.
    """

    name = "delta-upsert-large"
    runs = 1
    rows, batch, batches, warm_up = 10_000_000, 100_000, 4, 1
    settings = (
        f"a table of {rows:,} rows; {batches} batches of {batch:,} JSON rows of about 250 B, each"
        " with a key of its own, spread over the whole table, local[2], availableNow; median over"
        f" the batches without the first {warm_up}. Each job's table has the properties that the"
        " job gives it: deletion vectors with Ottla, Delta's defaults by hand"
    )

    def __init__(self) -> None:
        names = ("delta-upsert-large, plain", "delta-upsert-large, ottla")
        self._comparison = Comparison(
            self.name,
            "rows/s",
            1.5,
            more_is_better=True,
            ways=(PLAIN_UPSERT, UPSERT),
            names=(*names, "delta-upsert-large, share"),
        )
        self.measures = self._comparison.measures

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        keys, batch = bench.amount(self.rows), bench.amount(self.batch)
        scenario = {"max_rows": batch, "table_rows": keys}
        with broker_of(contestant, bench, PARTITIONS) as address:
            fill(address, "rows", self.batches * batch, keys)

            def run(job: str) -> float:
                found = run_job(job, scenario, address, "rows")
                if found["rows"] != keys:
                    raise ClientError(f"the table has {found['rows']} rows of {keys}")
                return rate(found, self.warm_up)

            return self._comparison.measure(run)


class History(_Keyed):
    """All versions of each key beside the last one, both with `ottla.pipelines`."""

    name = "delta-history"

    def __init__(self) -> None:
        names = ("delta-history, upsert's batch", "delta-history, batch", "delta-history, share")
        ways = (UPSERT, HISTORY)
        super().__init__(
            Comparison(self.name, "ms", 1.5, more_is_better=False, ways=ways, names=names)
        )

    def value(self, found: dict[str, Any]) -> float:
        return batch_time(found, WARM_UP)
