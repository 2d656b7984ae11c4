"""The time without a controller after a kill of the controller, with many partitions."""

import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from bench.clusters import SIZE, RunningCluster
from bench.measure import Bench, ClientError, Measure

PARTITIONS = 1000
TOPIC = "many"
MAX_SECONDS = 120.0
TRY_SECONDS = 3.0


class ControllerFailover:
    """The controller is also a broker: its partitions need new leaders, which the next controller
    can elect only after its own election.
    """

    name = "controller-failover"
    runs = 3
    settings = (
        f"three brokers, defaults; {PARTITIONS:,} partitions with {SIZE} replicas; SIGKILL of the"
        " controller (of KRaft: of the active one, in one process with a broker as the others),"
        " until the survivors have created a topic, and until they name a living leader for"
        " each partition"
    )
    measures = (
        Measure("controller killed to next topic created", "s", more_is_better=False, limit=3),
        Measure("controller killed to all led", "s", more_is_better=False, limit=3),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        with RunningCluster(contestant, bench.jars, prefix=bench.prefix) as cluster:
            cluster.create_topic(TOPIC, bench.amount(PARTITIONS))
            dead = cluster.controller()
            began = time.monotonic()
            cluster.brokers[dead].child.kill()
            cluster.brokers.pop(dead)
            created = self._created(cluster, began)
            led = self._all_led(cluster, dead, began)
        return {self.measures[0].name: created, self.measures[1].name: led}

    def _created(self, cluster: RunningCluster, began: float) -> float:
        while (took := time.monotonic() - began) < MAX_SECONDS:
            # A new client each time: the last one may keep trying the dead broker.
            admin = cluster.admin
            made = admin.create_topics([NewTopic("after", 1, 1)], request_timeout=TRY_SECONDS)
            try:
                made["after"].result(2 * TRY_SECONDS)
            except KafkaException as fault:
                if fault.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    continue
            return time.monotonic() - began
        raise ClientError(f"no topic could be created {took:.0f} s after the controller's death")

    def _all_led(self, cluster: RunningCluster, dead: int, began: float) -> float:
        admin = cluster.admin
        while (took := time.monotonic() - began) < MAX_SECONDS:
            try:
                partitions = admin.list_topics(TOPIC, 5).topics[TOPIC].partitions.values()
            except KafkaException:
                continue  # the request went to the dead broker
            if all(each.leader not in (dead, -1) for each in partitions):
                return time.monotonic() - began
            time.sleep(0.01)
        raise ClientError(f"partitions had no leader {took:.0f} s after the controller's death")
