"""Tables with keys: an upsert beside two MERGEs by hand, and a history beside the upsert."""

from typing import Any, Final

from confluent_kafka import Producer

from bench.figures.comparison import Comparison, Taken
from bench.figures.delta import (
    FLUSH_SECONDS,
    NOTE,
    batch_time,
    broker_of,
    cpu_us,
    rate,
    run_job,
)
from bench.figures.delta_job import row
from bench.measure import Bench, ClientError

PLAIN_UPSERT, TUNED_UPSERT, UPSERT = "upsert-plain", "upsert-tuned", "upsert-ottla"
HISTORY: Final = "history-ottla"
WAYS: Final = {"plain": PLAIN_UPSERT, "tuned": TUNED_UPSERT, "ottla": UPSERT}
PARTITIONS: Final = 2
KEYS: Final = 200_000
BATCH: Final = 100_000
# Java's second compiler takes 40 % of the CPU until the fifth batch of a MERGE, and then less with
# each. A batch of the plain MERGE takes half a minute, so there are fewer of it.
BATCHES, WARM_UP = 12, 5
PLAIN_BATCHES, PLAIN_WARM_UP = 6, 3
# Both ways of a history are Ottla's, and its batches take longest.
HISTORY_BATCHES, HISTORY_WARM_UP = 7, 3


def described(batches: int, warm_up: int) -> str:
    return (
        f"{batches * BATCH:,} JSON rows of about 250 B with {KEYS:,} keys, all of a key in one of"
        f" {PARTITIONS} partitions, {BATCH:,} a batch, local[2], availableNow; median over the"
        f" batches without the first {warm_up}"
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
    """The rows of one topic, taken by each job in turn; the plain one takes fewer of them."""

    runs = 3
    batches, warm_up = BATCHES, WARM_UP

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self.measures = comparison.measures

    def value(self, found: dict[str, Any], warm_up: int) -> Taken:
        raise NotImplementedError

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        batch = bench.amount(BATCH)
        rows, keys = self.batches * batch, KEYS // BATCH * batch
        with broker_of(contestant, bench, PARTITIONS) as address:
            fill(address, "rows", rows, keys)

            def run(job: str) -> Taken:
                topic = "rows"
                if is_plain := job == PLAIN_UPSERT:
                    topic = "plain-rows"
                    fill(address, topic, PLAIN_BATCHES * batch, keys)
                found = run_job(job, {"max_rows": batch}, address, topic)
                expected = rows if job == HISTORY else keys
                if found["rows"] != expected:
                    raise ClientError(f"the table has {found['rows']} rows of {expected}")
                return self.value(found, PLAIN_WARM_UP if is_plain else self.warm_up)

            return self._comparison.measure(run)


class Upsert(_Keyed):
    """The last row of each key: `ottla.pipelines` beside a MERGE by hand, plain and tuned."""

    name = "delta-upsert"
    runs = 2
    settings = (
        f"{described(BATCHES, WARM_UP)}; plain: {PLAIN_BATCHES} batches, without the first"
        f" {PLAIN_WARM_UP}"
    )

    def __init__(self) -> None:
        super().__init__(
            Comparison(self.name, "rows/s", 1.3, WAYS, more_is_better=True, cpu_goal=0.8)
        )

    def value(self, found: dict[str, Any], warm_up: int) -> Taken:
        return Taken(rate(found, warm_up), cpu_us(found, warm_up))


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
        " job gives it: deletion vectors with Ottla and the tuned job, Delta's defaults otherwise"
    )

    def __init__(self) -> None:
        self._comparison = Comparison(
            self.name, "rows/s", 1.3, WAYS, more_is_better=True, cpu_goal=0.8
        )
        self.measures = self._comparison.measures

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        keys, batch = bench.amount(self.rows), bench.amount(self.batch)
        scenario = {"max_rows": batch, "table_rows": keys}
        with broker_of(contestant, bench, PARTITIONS) as address:
            fill(address, "rows", self.batches * batch, keys)

            def run(job: str) -> Taken:
                found = run_job(job, scenario, address, "rows")
                if found["rows"] != keys:
                    raise ClientError(f"the table has {found['rows']} rows of {keys}")
                return Taken(rate(found, self.warm_up), cpu_us(found, self.warm_up))

            return self._comparison.measure(run)


class History(_Keyed):
    """All versions of each key beside the last one, both with `ottla.pipelines`."""

    name = "delta-history"
    batches, warm_up = HISTORY_BATCHES, HISTORY_WARM_UP
    settings = described(HISTORY_BATCHES, HISTORY_WARM_UP)

    def __init__(self) -> None:
        ways = {"upsert's batch": UPSERT, "batch": HISTORY}
        super().__init__(Comparison(self.name, "ms", 1.5, ways, more_is_better=False))

    def value(self, found: dict[str, Any], warm_up: int) -> Taken:
        return Taken(batch_time(found, warm_up))
