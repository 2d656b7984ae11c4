"""One run: a cluster under load, faults from a seed, and the verdict of the checker."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient, NewTopic

from faults import replicas
from faults.anomaly import Policy, Verdict
from faults.checker import check
from faults.clients import Rate
from faults.disk import ControlledDisk
from faults.history import (
    Acknowledged,
    ClientError,
    Elected,
    Ended,
    Event,
    Fault,
    FinalRead,
    Polled,
    Recorder,
    Refused,
    Sent,
    Unknown,
)
from faults.load import Load
from faults.nemesis import Nemesis
from faults.schedule import Kind, draw
from faults.watch import ElectionWatch
from ottla.testing import Cluster, KitError, Security

TOPIC: Final = "faults"
SESSION_MS: Final = 4_000
FLUSH_MS: Final = 1_000
CREATE_WITHIN_S: Final = 30.0
WHOLE_WITHIN_S: Final = 60.0
PROGRESS_RECORDS: Final = 300
PROGRESS_WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a run. `folder` is for the history and the brokers' data and logs. With
    `transactions`, all producers are transactional; the policy has to be strict.
    """

    seed: int
    seconds: float
    policy: Policy
    folder: Path
    brokers: int = 3
    ensemble: int = 1
    partitions: int = 4
    kinds: tuple[Kind, ...] = ()
    rate: Rate = field(default_factory=Rate)
    transactions: bool = False
    secure: bool = False
    """TLS, SCRAM and ACLs, for clients and between brokers."""

    @property
    def config(self) -> dict[str, object]:
        """Settings of every broker: Kafka's defaults, with timeouts short enough for a minute."""
        return {
            "zookeeper.session.timeout.ms": SESSION_MS,
            # ZooKeeper on a busy machine may respond late.
            "zookeeper.connection.timeout.ms": 20_000,
            # A leader that is alone in the ISR when it dies would block the partition.
            "replica.lag.time.max.ms": 30_000 if self.policy is Policy.acks_1 else 3_000,
            "min.insync.replicas": min(2, self.brokers) if self.policy is Policy.strict else 1,
            "offsets.topic.replication.factor": min(3, self.brokers),
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.num.partitions": 4,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
            # Some records are always synced, and some are not yet.
            "log.flush.interval.ms": FLUSH_MS,
            "log.flush.scheduler.interval.ms": FLUSH_MS,
            # The last broker to stop cannot hand over its partitions, and waits this long.
            "controlled.shutdown.retry.backoff.ms": 500,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict, and numbers that show how much was checked."""

    verdict: Verdict
    events: tuple[Event, ...]

    def count(self, *kinds: type) -> int:
        return sum(isinstance(event, kinds) for event in self.events)

    def _ended(self, *, is_commit: bool) -> int:
        return sum(isinstance(e, Ended) and e.is_commit is is_commit for e in self.events)

    @property
    def numbers(self) -> dict[str, int]:
        """The table at the end of a run."""
        polled = (len(event.records) for event in self.events if isinstance(event, Polled))
        final = (len(event.records) for event in self.events if isinstance(event, FinalRead))
        begun = (e for e in self.events if isinstance(e, Fault) and e.what.startswith("begin"))
        return {
            "faults": sum(1 for _ in begun),
            "leaders and in-sync sets seen": self.count(Elected),
            "transactions committed": self._ended(is_commit=True),
            "transactions aborted": self._ended(is_commit=False),
            "records sent": self.count(Sent),
            "acknowledged": self.count(Acknowledged),
            "outcome unknown": self.count(Unknown),
            "refused": self.count(Refused),
            "polled by the group": sum(polled),
            "in the log at the end": sum(final),
            "errors reported by clients": self.count(ClientError),
            "losses that the policy allows": len(self.verdict.allowed),
            "forbidden": len(self.verdict.forbidden),
        }


def run(plan: Plan, log: Callable[[str], None]) -> Outcome:
    """Raises KitError or LoadError if the cluster or a client does not finish."""
    plan.folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    recorder = Recorder(
        plan.folder / "history.jsonl", lambda: int((time.monotonic() - began) * 1000)
    )
    try:
        cluster = Cluster(
            plan.brokers,
            plan.config,
            ensemble=plan.ensemble,
            data=plan.folder / "cluster",
            security=Security() if plan.secure else None,
        )
        with closing(cluster):
            cluster.prepare()
            disks = _control_disks(cluster, plan)
            for broker in cluster.brokers:
                cluster.launch(broker)
            for each in cluster.brokers.values():
                each.wait_ready()
            cluster.create_internal_topics()
            create_topic(cluster, plan)
            log(f"{plan.brokers} brokers are up: {cluster.bootstrap}")
            _under_load(cluster, plan, recorder, log, disks)
            verdict = _stopped(cluster, plan, recorder, log)
    finally:
        recorder.close()
    return Outcome(verdict, tuple(recorder.events))


def _control_disks(cluster: Cluster, plan: Plan) -> dict[int, ControlledDisk]:
    """Let faults control the disks of brokers that have not started yet."""
    disks = {
        number: ControlledDisk(plan.folder / f"disk-{number}", broker.data)
        for number, broker in cluster.brokers.items()
    }
    for number, disk in disks.items():
        cluster.brokers[number].program = disk.program
    return disks


def create_topic(cluster: Cluster, plan: Plan) -> None:
    """Create the run's topic; wait until it is fully in sync."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **cluster.kit_settings})
    factor = min(3, plan.brokers)
    # Brokers are ready before the controller knows all of them.
    cluster.wait_for(
        "all brokers in the metadata",
        lambda: len(admin.list_topics(timeout=CREATE_WITHIN_S).brokers) == plan.brokers or None,
    )
    # For this topic only: the group's offsets must survive.
    unclean = {"unclean.leader.election.enable": str(plan.policy is Policy.unclean).lower()}
    made: Any = admin.create_topics([NewTopic(TOPIC, plan.partitions, factor, config=unclean)])
    made[TOPIC].result(CREATE_WITHIN_S)
    cluster.wait_in_sync(TOPIC, WHOLE_WITHIN_S)


def _under_load(
    cluster: Cluster,
    plan: Plan,
    recorder: Recorder,
    log: Callable[[str], None],
    disks: Mapping[int, ControlledDisk],
) -> None:
    watch = ElectionWatch(cluster.zookeeper, TOPIC, plan.partitions, recorder)
    load = Load(
        cluster.bootstrap,
        TOPIC,
        plan.partitions,
        recorder,
        plan.policy,
        plan.rate,
        transactions=plan.transactions,
        security=cluster.kit_settings,
    )
    steps = draw(
        plan.seed,
        plan.seconds,
        plan.policy,
        brokers=plan.brokers,
        session_ms=SESSION_MS,
        kinds=plan.kinds,
    )
    watch.start()
    try:
        load.start()
        _progress(cluster, load, recorder, "before the faults")
        Nemesis(cluster, TOPIC, recorder, log, members=plan.ensemble, disks=disks).run(steps)
        log("the faults are over; waiting for the clients")
        _progress(cluster, load, recorder, "after the faults")
        load.stop()
        load.read_all()
    finally:
        watch.stop()


def _progress(cluster: Cluster, load: Load, recorder: Recorder, when: str) -> None:
    """Wait until more records are acknowledged and polled. Otherwise the faults might meet no load,
    or a load that never recovered would pass."""
    begin = len(recorder.events)

    def seen() -> bool | None:
        new = recorder.events[begin:]
        acknowledged = sum(isinstance(event, Acknowledged) for event in new)
        polled = sum(len(event.records) for event in new if isinstance(event, Polled))
        return min(acknowledged, polled) >= PROGRESS_RECORDS or None

    what = f"the clients' progress {when}"
    cluster.wait_for(what, seen, PROGRESS_WITHIN_S, because=load.last_lines)


def _stopped(
    cluster: Cluster, plan: Plan, recorder: Recorder, log: Callable[[str], None]
) -> Verdict:
    """Stop the brokers, and check the history and the logs."""
    cluster.wait_in_sync(TOPIC, WHOLE_WITHIN_S)
    leaders = [cluster.leader(TOPIC, partition) for partition in range(plan.partitions)]
    assigned = cluster.state.replicas(TOPIC)
    if assigned is None:
        raise KitError(f"topic {TOPIC} no longer exists")
    for broker in cluster.brokers:
        cluster.stop(broker)
    log("the brokers are stopped; checking")
    found = []
    for partition, leader in enumerate(leaders):
        data = cluster.brokers[leader].data
        recorder.record(replicas.epochs(data, TOPIC, partition, recorder.now_ms()))
        folders = [cluster.brokers[broker].data for broker in assigned[partition]]
        found += replicas.compare(TOPIC, partition, folders)
    verdict = check(recorder.events, plan.policy)
    return Verdict((*verdict.anomalies, *found))


def forget(plan: Plan) -> None:
    """Delete the folder of a run without anomalies."""
    shutil.rmtree(plan.folder, ignore_errors=True)
