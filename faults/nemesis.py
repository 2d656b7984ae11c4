"""Carries out a schedule of faults on a cluster, and records each fault."""

from __future__ import annotations

import resource
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import AdminClient

from faults.clone import clone_of
from faults.disk import ControlledDisk
from faults.history import Fault, Recorder
from faults.schedule import Kind, Step
from ottla.client.admin.reassignments import reassign
from ottla.client.client import Client
from ottla.client.errors import ClientError
from ottla.testing import Cluster, KitError
from ottla.testing.errors import last_lines

WHOLE_WITHIN_S: Final = 60.0
ADMIN_WITHIN_S: Final = 20.0
FULL_WITHIN_S: Final = 30.0
FAILS_WITHIN_S: Final = 30.0
REFUSES_WITHIN_S: Final = 60.0
ROOM_BYTES: Final = 1_000


class Nemesis:
    """One fault after the other. Ends every fault that it began, even if it stops early."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        recorder: Recorder,
        log: Callable[[str], None],
        *,
        members: int = 1,
        disks: Mapping[int, ControlledDisk] | None = None,
    ) -> None:
        """`members`: the size of the ensemble. `disks`: of the brokers, for faults of these."""
        self.cluster = cluster
        self.topic = topic
        self.recorder = recorder
        self.log = log
        self.members = members
        self.disks = disks or {}
        self._stop = threading.Event()

    def run(self, steps: tuple[Step, ...]) -> None:
        """Raises KitError if the cluster does not recover in time."""
        for step in steps:
            if self._stop.wait(step.rest_ms / 1000):
                return
            self._record(f"begin {step}")
            self._DO[step.kind](self, step)
            self._record(f"end {step}")
            self._whole()

    def stop(self) -> None:
        """Finish the current fault and begin no other; may be called from any thread."""
        self._stop.set()

    def _record(self, what: str) -> None:
        self.recorder.record(Fault(self.recorder.now_ms(), what))
        self.log(what)

    def _whole(self) -> None:
        """Wait until every broker is back and in sync: the next fault must be the only one."""
        self.cluster.wait_registered(self.cluster.brokers, WHOLE_WITHIN_S)
        self.cluster.wait_in_sync(self.topic, WHOLE_WITHIN_S)

    @staticmethod
    def _last(step: Step) -> None:
        time.sleep(step.lasts_ms / 1000)

    def _kill(self, step: Step) -> None:
        self.cluster.kill(step.broker)
        self._last(step)
        self.cluster.start(step.broker)

    def _stop_broker(self, step: Step) -> None:
        self.cluster.stop(step.broker)
        self._last(step)
        self.cluster.start(step.broker)

    def _pause(self, step: Step) -> None:
        self.cluster.pause(step.broker)
        self._last(step)
        self.cluster.resume(step.broker)

    def _cut(self, step: Step) -> None:
        self.cluster.cut(step.broker, step.other)
        self._last(step)
        self.cluster.heal()

    def _cut_off(self, step: Step) -> None:
        self.cluster.cut_off(step.broker)
        self._last(step)
        self.cluster.heal()

    def _cut_zookeeper(self, step: Step) -> None:
        self.cluster.cut_zookeeper(step.broker)
        self._last(step)
        self.cluster.heal()

    def _no_zookeeper(self, step: Step) -> None:
        for broker in self.cluster.brokers:
            self.cluster.cut_zookeeper(broker)
        self._last(step)
        self.cluster.heal()

    def _expire(self, step: Step) -> None:
        try:
            self.cluster.expire_session(step.broker)
        except KitError as fault:
            # On a busy machine the session may just have ended by itself.
            self._record(f"expire: {fault}")
        self._last(step)

    def _kill_zookeeper(self, step: Step) -> None:
        """With a single member, no leader can be elected until it is back."""
        member = 1 + step.broker % self.members
        self.cluster.kill_zookeeper(member)
        self._last(step)
        self.cluster.start_zookeeper(member)

    def _lose_disk(self, step: Step) -> None:
        self.cluster.kill(step.broker)
        self.cluster.lose_disk(step.broker)
        self._last(step)
        self.cluster.start(step.broker)

    def _full_disk(self, step: Step) -> None:
        """A limit of file sizes refuses writes as a full disk does. Then the broker stops by
        itself, so that others take over. One broker alone goes on, and later has room again.
        """
        broker = self.cluster.brokers[step.broker]
        assert broker.process is not None
        logs = broker.data.glob(f"{self.topic}-*/*.log")
        most = max((log.stat().st_size for log in logs), default=0) + ROOM_BYTES
        process = broker.process.pid
        _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (most, hard))
        if len(self.cluster.brokers) == 1:
            self._last(step)
            resource.prlimit(process, resource.RLIMIT_FSIZE, (hard, hard))
            return
        try:
            broker.process.wait(FULL_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise KitError(
                f"broker {step.broker} still runs {FULL_WITHIN_S:g} s after its disk was full"
            ) from None
        self._kill(step)

    def _fail_sync(self, step: Step) -> None:
        """The broker stops by itself: nobody knows what is on its disk."""
        broker, disk = self.cluster.brokers[step.broker], self.disks[step.broker]
        assert broker.process is not None
        disk.fail_next_sync()
        try:
            broker.process.wait(FAILS_WITHIN_S)
        except subprocess.TimeoutExpired:
            what = "its sync failed" if disk.has_failed else "it was to sync"
            raise KitError(
                f"broker {step.broker} still runs {FAILS_WITHIN_S:g} s after {what}"
            ) from None
        finally:
            disk.fail_no_more()
        self._kill(step)

    def _power(self, step: Step) -> None:
        self.cluster.kill(step.broker)
        lost_bytes = self.disks[step.broker].lose_unsynced(Random(step.lasts_ms))
        self._record(f"broker {step.broker} lost {lost_bytes} bytes")
        self._last(step)
        self.cluster.start(step.broker)

    def _clone(self, step: Step) -> None:
        """A restored backup or a cloned machine: the original goes on alone."""
        original = self.cluster.brokers[step.broker]
        session = self.cluster.state.session_of(step.broker)
        with tempfile.TemporaryDirectory(prefix="ottla-clone-") as folder:
            clone = clone_of(original, Path(folder) / "data", self.cluster.zookeeper)
            clone.launch()
            assert clone.process is not None
            try:
                code = clone.process.wait(REFUSES_WITHIN_S)
            except subprocess.TimeoutExpired:
                raise KitError(
                    f"a copy of broker {step.broker}'s folder still runs after "
                    f"{REFUSES_WITHIN_S:g} s:{last_lines(clone.said())}"
                ) from None
            finally:
                clone.end()
            if code == 0 or self.cluster.state.session_of(step.broker) != session:
                raise KitError(f"a copy of broker {step.broker}'s folder took its id")
        self._last(step)

    def _move_leaders(self, step: Step) -> None:
        """Elect preferred leaders: after a kill, other replicas lead."""
        admin = AdminClient(
            {"bootstrap.servers": self.cluster.bootstrap, **self.cluster.kit_settings}
        )
        try:
            admin.elect_leaders(ElectionType.PREFERRED, None).result(ADMIN_WITHIN_S)
        except KafkaException as fault:
            # The result does not depend on this request: the history decides.
            self._record(f"elect leaders: {fault}")
        self._last(step)

    def _move_replicas(self, step: Step) -> None:
        """Move each partition's first replica to a broker that has none, if there is one."""
        targets: dict[int, list[int]] = {}
        for index, held in (self.cluster.state.replicas(self.topic) or {}).items():
            outside = [broker for broker in self.cluster.brokers if broker not in held]
            targets[index] = [outside[0], *held[:-1]] if outside else [*held[1:], held[0]]
        # librdkafka has no call for it.
        with Client(self.cluster.bootstrap, self.cluster.kit_settings) as client:
            refused = ""
            try:
                reassign(client, {self.topic: targets})
            except ClientError as error:
                refused = f", {error.reason}"
            self._record(f"moving replicas: {targets}{refused}")
        self._kill(step)
        self.cluster.wait_for(
            "the replicas to move",
            lambda: self.cluster.state.replicas(self.topic) == targets or None,
        )

    def _rolling_restart(self, step: Step) -> None:
        for broker in self.cluster.brokers:
            self.cluster.stop(broker)
            self.cluster.start(broker)
            self.cluster.wait_in_sync(self.topic, WHOLE_WITHIN_S)
        self._last(step)

    def _deposed(self, step: Step) -> None:
        """The broker takes writes that no follower replicates, and dies with them in its log."""
        self.cluster.cut_off(step.broker)
        self._last(step)
        self.cluster.kill(step.broker)
        self.cluster.heal()
        self._last(step)
        self.cluster.start(step.broker)

    def _last_standing(self, step: Step) -> None:
        last = self.cluster.leader(self.topic, 0)
        others = [broker for broker in self.cluster.brokers if broker != last]
        for broker in others:
            self.cluster.kill(broker)
        self.cluster.wait_for(
            "the last one to be alone in sync",
            lambda: (self.cluster.state.partition(self.topic, 0) or {})["isr"] == [last] or None,
        )
        self._last(step)
        self.cluster.kill(last)
        for broker in others:
            self.cluster.start(broker)
        self.cluster.wait_for(
            "an unclean election", lambda: self.cluster.state.leader(self.topic, 0)
        )
        self._last(step)
        self.cluster.start(last)

    _DO: Final = {
        Kind.kill: _kill,
        Kind.stop: _stop_broker,
        Kind.pause: _pause,
        Kind.cut: _cut,
        Kind.cut_off: _cut_off,
        Kind.cut_zookeeper: _cut_zookeeper,
        Kind.no_zookeeper: _no_zookeeper,
        Kind.expire: _expire,
        Kind.kill_zookeeper: _kill_zookeeper,
        Kind.lose_disk: _lose_disk,
        Kind.full_disk: _full_disk,
        Kind.fail_sync: _fail_sync,
        Kind.power: _power,
        Kind.clone: _clone,
        Kind.move_leaders: _move_leaders,
        Kind.move_replicas: _move_replicas,
        Kind.rolling_restart: _rolling_restart,
        Kind.deposed: _deposed,
        Kind.last_standing: _last_standing,
    }
