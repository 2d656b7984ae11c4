"""Groups of the consumer protocol (KIP-848): until they are stable, and what a request costs."""

from contextlib import ExitStack

from bench.brokers import Broker, running, settle
from bench.client_process import ClientProcess
from bench.epoch_members import EpochMember, EpochMembers
from bench.figures.start import first_produce
from bench.measure import Bench, Measure
from bench.topics import create_topic

SIZES = (100, 500)
PARTITIONS = 1_000
BEAT_SECONDS = 0.5
LEAVING_SHARE = 10
CLIENTS = 4
BEATEN = 15_000
COMMITTED = 15_000
WARM_UP_SHARE = 10
GROUPS = 1_000
MEMBERS = 10
MB = 1_000_000
SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": str(int(BEAT_SECONDS * 1000)),
}


class ConsumerGroups:
    """Large groups that form and shrink, heartbeats and commits one by one."""

    name = "consumer-groups"
    runs = None
    settings = (
        f"plain requests on a connection for each member; {PARTITIONS:,} partitions,"
        f" heartbeats every {BEAT_SECONDS:g} s, and at once where a member has something to tell,"
        f" group.consumer.assignment.interval.ms=0; all join at once, then a tenth leaves, until"
        f" all are in one epoch and have all partitions; heartbeats and commits: {CLIENTS} members"
        f" of a group each, {BEATEN:,} requests by each, one after the other, after a tenth of it"
        f" to warm up"
    )
    measures = (
        *(
            Measure(f"until {count} members {what}", "ms", more_is_better=False, ratio=1.0)
            for count in SIZES
            for what in ("have joined", "are stable without a tenth")
        ),
        Measure("heartbeats of four members", "requests/s", more_is_better=True, ratio=1.0),
        Measure("broker CPU, heartbeats", "µs/request", more_is_better=False),
        Measure("commits of four members", "requests/s", more_is_better=True, ratio=1.0),
        Measure("broker CPU, commits of members", "µs/request", more_is_better=False),
    )

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        values: list[float] = []
        with running(contestant, bench.jars, SETTINGS, bench.prefix) as broker:
            first_produce(broker.address, "small", 0)
            create_topic(broker.address, "large", PARTITIONS)
            for count in SIZES:
                members = max(bench.amount(count), LEAVING_SHARE)
                # The coordinator is loaded before.
                first = EpochMember(broker.address, f"large-{count}", "large")
                with first.socket:
                    first.beat()
                    first.beat(leaves=True)
                with EpochMembers(
                    broker.address, f"large-{count}", "large", members, PARTITIONS
                ) as group:
                    values.append(group.until_stable(BEAT_SECONDS) * 1000)
                    group.leave(members // LEAVING_SHARE)
                    values.append(group.until_stable(BEAT_SECONDS) * 1000)
            for what, count in (("beat", BEATEN), ("commit", COMMITTED)):
                requests(broker, what, max(bench.amount(count) // WARM_UP_SHARE, 1))
                values += requests(broker, what, bench.amount(count))
        return dict(zip((measure.name for measure in self.measures), values, strict=True))


def requests(broker: Broker, what: str, count: int) -> tuple[float, float]:
    """`count` requests of each member: requests/s, and CPU microseconds a request."""
    with ExitStack() as running:
        members = [
            running.enter_context(
                ClientProcess(
                    "a member",
                    "bench.epoch_members",
                    [broker.address, "small", f"{what}-{number}", what, str(count)],
                )
            )
            for number in range(CLIENTS)
        ]
        for each in members:
            each.wait_ready()
        before = broker.child.cpu_seconds()
        for each in members:
            each.tell("go")
        took = [float(each.line()) for each in members]
        cpu_seconds = broker.child.cpu_seconds() - before
    return count * CLIENTS / max(took), cpu_seconds * 1e6 / (count * CLIENTS)


class GroupMemory:
    """Many groups, which do nothing but be there."""

    name = "group-memory"
    runs = None
    settings = (
        f"VmRSS 5 s after {GROUPS:,} groups of the consumer protocol with {MEMBERS} members each"
        " have formed, on one topic of 10 partitions; Kafka with its own start script's flags"
    )
    measures = (Measure("memory of 1,000 groups", "MB", more_is_better=False, ratio=0.3),)

    def measure(self, contestant: str, bench: Bench) -> dict[str, float]:
        with running(contestant, bench.jars, SETTINGS, bench.prefix) as broker:
            create_topic(broker.address, "t", MEMBERS)
            first = EpochMember(broker.address, "group-0", "t")
            first.beat()
            with first.socket:
                for number in range(bench.amount(GROUPS)):
                    group = f"group-{number}"
                    members = [
                        EpochMember(broker.address, group, "t", first.socket)
                        for _ in range(MEMBERS - (number == 0))
                    ]
                    for _ in range(2):
                        for each in members:
                            each.beat()
            settle(broker, 5)
            return {self.measures[0].name: broker.child.rss_bytes() / MB}
