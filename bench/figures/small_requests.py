"""Requests with one record or offset each: the fixed cost of a request."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from bench import rdkafka
from bench.brokers import Broker, running
from bench.client_process import ClientProcess
from bench.figures.start import first_produce
from bench.measure import Bench, Measure

CLIENTS = 4
PRODUCED = 200_000
COMMITTED = 15_000
"""Commits of each consumer."""
WARM_UP_SHARE = 10
RECORD_BYTES = 100
ONE_A_REQUEST = (
    *("-X", "linger.ms=0", "-X", "batch.num.messages=1"),
    *("-X", "message.send.max.retries=2147483647"),
)


class SmallRequests:
    """Many requests of one record, and offset commits one by one."""

    name = "small-requests"
    runs = None
    settings = (
        f"rdkafka_performance: {PRODUCED:,} records of {RECORD_BYTES} B, acks=1, one a request"
        f" ({' '.join(ONE_A_REQUEST)}), one client and {CLIENTS} with a topic each, all in all as"
        f" many; offset commits: {CLIENTS} consumers of confluent-kafka with a group each,"
        f" {COMMITTED:,} synchronous commits by each; before each a tenth of it to warm up"
    )
    measures = (
        Measure("small requests, one client", "requests/s", more_is_better=True, ratio=1.1),
        Measure("broker CPU, one client", "µs/request", more_is_better=False, limit=30),
        Measure("small requests, four clients", "requests/s", more_is_better=True, ratio=1.1),
        Measure("broker CPU, four clients", "µs/request", more_is_better=False, limit=30),
        Measure("offset commits, four consumers", "requests/s", more_is_better=True, ratio=1.1),
        Measure("broker CPU, offset commits", "µs/request", more_is_better=False),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        count, commits = bench.amount(PRODUCED), bench.amount(COMMITTED)
        with running(contestant, bench.jars, prefix=bench.prefix) as broker:
            for number in range(CLIENTS):
                first_produce(broker.address, f"small-{number}", 0)
            values: list[float] = []
            for clients in (1, CLIENTS):
                produce(broker, bench, clients, count // WARM_UP_SHARE)
                values += produce(broker, bench, clients, count)
            commit(broker, max(commits // WARM_UP_SHARE, 1))
            values += commit(broker, commits)
        return dict(zip((measure.name for measure in self.measures), values, strict=True))


def produce(
    broker: Broker,
    bench: Bench,
    clients: int,
    count: int,
    address: str | None = None,
    options: Sequence[str] = (),
) -> tuple[float, float]:
    """Write `count` records with this many clients: requests/s, and CPU microseconds a request.
    `address`: another listener of the broker; `options`: the tool's, for it.
    """
    command = [str(bench.rdkafka_performance), "-P", "-p", "0", "-s", str(RECORD_BYTES)]
    command += ["-c", str(count // clients), "-a", "1", "-b", address or broker.address]
    command += [*ONE_A_REQUEST, *options]
    topics = [f"small-{number}" for number in range(clients)]
    before = broker.child.cpu_seconds()
    with ThreadPoolExecutor(clients) as threads:
        # The tool exits with 1 if its queue still has an event other than a delivery. Its last line
        # says how much it delivered, and `produced` checks that.
        said = list(
            threads.map(lambda topic: rdkafka.run([*command, "-t", topic], codes=(0, 1)), topics)
        )
    cpu_seconds = broker.child.cpu_seconds() - before
    rate = sum(rdkafka.produced(each, count // clients)[1] for each in said)
    return rate, cpu_seconds * 1e6 / (count // clients * clients)


def commit(broker: Broker, count: int) -> tuple[float, float]:
    """`count` commits by each consumer: requests/s, and CPU microseconds a request."""
    with ExitStack() as running:
        consumers = [
            running.enter_context(
                ClientProcess(
                    "a consumer",
                    "bench.committing",
                    [broker.address, f"small-{number}", f"group-{number}", str(count)],
                )
            )
            for number in range(CLIENTS)
        ]
        for each in consumers:
            each.wait_ready()
        before = broker.child.cpu_seconds()
        for each in consumers:
            each.tell("go")
        took = [float(each.line()) for each in consumers]
        cpu_seconds = broker.child.cpu_seconds() - before
    return count * CLIENTS / max(took), cpu_seconds * 1e6 / (count * CLIENTS)
