"""Records the leader of each partition from the coordination tree."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from kazoo.client import KazooClient

from faults.history import Elected, Recorder

CONNECT_WITHIN_S: Final = 20.0
RECONNECT: Final = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}
# kazoo logs each connection attempt, but the nemesis itself takes ZooKeeper down.
QUIET: Final = logging.getLogger("faults.zookeeper")
QUIET.setLevel(logging.CRITICAL)


class ElectionWatch:
    """Reads the tree directly, without a broker. Changes within one round trip to ZooKeeper may
    appear as one."""

    def __init__(self, zookeeper: str, topic: str, partitions: int, recorder: Recorder) -> None:
        self._topic = topic
        self._partitions = partitions
        self._recorder = recorder
        # Long, so that faults of ZooKeeper do not expire the session.
        self._client: Any = KazooClient(
            zookeeper, timeout=30.0, logger=QUIET, connection_retry=RECONNECT
        )

    def start(self) -> None:
        """Raises kazoo's KazooTimeoutError if ZooKeeper does not respond."""
        self._client.start(CONNECT_WITHIN_S)
        for partition in range(self._partitions):
            self._watch(partition)

    def _watch(self, partition: int) -> None:
        def changed(data: bytes | None, _stat: object) -> None:
            if data is not None:
                state = json.loads(data)
                self._recorder.record(
                    Elected(
                        self._recorder.now_ms(),
                        partition,
                        state["leader"],
                        state["leader_epoch"],
                        tuple(state["isr"]),
                    )
                )

        path = f"/brokers/topics/{self._topic}/partitions/{partition}/state"
        self._client.DataWatch(path, changed)

    def stop(self) -> None:
        self._client.stop()
        self._client.close()
