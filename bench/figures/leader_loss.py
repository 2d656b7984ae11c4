"""The time without acknowledgements when a partition's leader is killed or moved."""

import signal
import time
from itertools import pairwise

from confluent_kafka import Producer

from bench.clusters import RunningCluster
from bench.measure import Bench, ClientError, Measure

TOPIC = "loss"
EVERY_SECONDS = 0.002
STEADY_SECONDS = 5.0
AFTER_SECONDS = 3.0
MAX_SECONDS = 120.0
CLIENT = {"acks": "all", "linger.ms": 0, "log_level": 0}


class Load:
    """Sends a record every two milliseconds; keeps acknowledgement times and fatal errors."""

    def __init__(self, address: str) -> None:
        self.acknowledged: list[float] = []
        self.faults: list[str] = []
        self._producer = Producer({"bootstrap.servers": address, **CLIENT})

    def run(self, seconds: float) -> None:
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            self.one()

    def run_until_acknowledged(self) -> float:
        """Run until a record sent from now on is acknowledged; return how long that took."""
        began = time.monotonic()
        told: list[float] = []
        while not told:
            if time.monotonic() - began > MAX_SECONDS:
                raise ClientError(f"nothing was acknowledged for {MAX_SECONDS:.0f} s")
            self.one(told)
        return told[0] - began

    def one(self, told: list[float] | None = None) -> None:
        def delivered(error: object, _: object) -> None:
            if error is not None:
                self.faults.append(str(error))
                return
            self.acknowledged.append(time.monotonic())
            if told is not None:
                told.append(self.acknowledged[-1])

        self._producer.produce(TOPIC, b"x" * 100, partition=0, on_delivery=delivered)
        self._producer.poll(EVERY_SECONDS)

    def finish(self) -> None:
        """Wait for the rest. Raises ClientError if a record was not acknowledged."""
        if self._producer.flush(MAX_SECONDS) or self.faults:
            raise ClientError(f"records were not acknowledged: {self.faults[:1] or 'no answer'}")

    def longest_gap(self, since: float) -> float:
        """The longest time in seconds between two acknowledgements since then."""
        times = [since, *(each for each in self.acknowledged if each >= since)]
        return max(
            (later - earlier for earlier, later in pairwise(times)),
            default=0.0,
        )


class LeaderLoss:
    """Uses the default settings of both brokers, as a user would."""

    name = "leader-loss"
    runs = None
    settings = (
        "three brokers, defaults; one partition with three replicas, a record every 2 ms by"
        f" confluent-kafka, {CLIENT}. Killed: from SIGKILL of the leader to the first"
        " acknowledgement of a record sent after it. Moved: the longest time without an"
        " acknowledgement around a SIGTERM of the leader, which hands over before it ends"
    )
    measures = (
        Measure("leader killed to next acknowledgement", "s", more_is_better=False, limit=1.0),
        Measure("longest pause, leader moved", "ms", more_is_better=False, limit=200),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        with RunningCluster(contestant, bench.jars, prefix=bench.prefix) as cluster:
            cluster.create_topic(TOPIC)
            load = Load(cluster.address)
            load.run(STEADY_SECONDS)
            leader = cluster.brokers[cluster.leader(TOPIC)].child
            began = time.monotonic()
            leader.process.send_signal(signal.SIGTERM)
            load.run(AFTER_SECONDS)
            moved_ms = load.longest_gap(began) * 1000
            load.finish()
        with RunningCluster(contestant, bench.jars, prefix=bench.prefix) as cluster:
            cluster.create_topic(TOPIC)
            load = Load(cluster.address)
            load.run(STEADY_SECONDS)
            cluster.brokers[cluster.leader(TOPIC)].child.process.kill()
            killed = load.run_until_acknowledged()
            load.finish()
        return {self.measures[0].name: killed, self.measures[1].name: moved_ms}
