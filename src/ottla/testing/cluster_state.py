"""The cluster's state in its coordination tree: leaders, replicas in sync."""

from __future__ import annotations

import json
import secrets
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError

from ottla.controller import layout
from ottla.controller.first_users import first_users
from ottla.security.sasl.scram import SALT_BYTES
from ottla.testing.broker_metadata import KnownPartition
from ottla.testing.errors import KitError, is_for_the_test

__tracebackhide__ = is_for_the_test

CONNECT_WITHIN_S: Final = 20.0
SESSION_TIMEOUT_S: Final = 10.0
RECONNECT: Final = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}
"""kazoo's default delays grow to a minute: after such an outage it would reconnect only after its
session has expired."""


class ClusterState:
    """Reads Kafka's own tree in ZooKeeper directly, so that no broker's stale metadata misleads a
    test. Raises KitError while ZooKeeper cannot be reached."""

    def __init__(self, zookeeper: str) -> None:
        self._zookeeper = zookeeper
        self._client: Any = None

    def add_users(self, text: str) -> None:
        """Users (as in `ottla.first.users`) that a cluster lacks; a new one makes them itself."""
        if self._data(layout.CLUSTER_ID) is None:
            return
        for user in first_users(text, lambda: secrets.token_bytes(SALT_BYTES)):
            if self._data(user.path) is None:
                self._connected().create(user.path, user.data, makepath=True)

    def controller(self) -> int | None:
        """The broker id of the controller."""
        node = self._json(layout.CONTROLLER)
        return None if node is None else int(node["brokerid"])

    def controller_epoch(self) -> int | None:
        """How many controllers there have been."""
        data = self._data(layout.CONTROLLER_EPOCH)
        return None if data is None else int(data)

    def live_brokers(self) -> list[int]:
        """The brokers that are registered."""
        return sorted(map(int, self._children(layout.BROKER_IDS)))

    def session_of(self, broker_id: int) -> int | None:
        """The ZooKeeper session of a registered broker."""
        stat = self._read(layout.broker_path(broker_id))
        return None if stat is None else int(stat[1].ephemeralOwner)

    def topics(self) -> list[str]:
        """All topics, internal ones too."""
        return sorted(self._children(layout.TOPICS))

    def replicas(self, topic: str) -> dict[int, list[int]] | None:
        """The assignment by partition; None if the topic does not exist."""
        node = self._json(layout.topic_path(topic))
        if node is None:
            return None
        return {int(number): list(brokers) for number, brokers in node["partitions"].items()}

    def partition(self, topic: str, partition: int) -> dict[str, Any] | None:
        """`leader` (-1 for none), `leader_epoch`, `isr`, `controller_epoch`; None before the
        partition has a state."""
        return self._json(layout.state_path(topic, partition))

    def leader(self, topic: str, partition: int) -> int | None:
        """The leader's broker id, or None."""
        state = self.partition(topic, partition)
        return None if state is None or state["leader"] < 0 else int(state["leader"])

    def known(self, topic: str) -> dict[tuple[str, int], KnownPartition]:
        """The topic's partitions that have a state, as every broker should know them."""
        found = {}
        for partition in self.replicas(topic) or {}:
            state = self.partition(topic, partition)
            if state is not None:
                found[topic, partition] = KnownPartition(
                    state["leader"], state["leader_epoch"], frozenset(state["isr"])
                )
        return found

    def not_in_sync(self, topic: str) -> list[str]:
        """One line for each partition without a leader or with an incomplete ISR."""
        replicas = self.replicas(topic)
        if not replicas:
            return [f"there is no topic {topic}"]
        missing = []
        for partition, brokers in sorted(replicas.items()):
            state = self.partition(topic, partition) or {"leader": -1, "isr": []}
            if state["leader"] < 0 or set(state["isr"]) != set(brokers):
                missing.append(
                    f"{topic}-{partition}: leader {state['leader']}, in sync {state['isr']} "
                    f"of {brokers}"
                )
        return missing

    def close(self) -> None:
        if self._client is not None:
            self._client.stop()
            self._client.close()
            self._client = None

    def _connected(self) -> Any:
        if self._client is None:
            client = KazooClient(
                self._zookeeper, timeout=SESSION_TIMEOUT_S, connection_retry=RECONNECT
            )
            try:
                client.start(CONNECT_WITHIN_S)
            except KazooTimeoutError:
                client.close()
                raise KitError(f"ZooKeeper at {self._zookeeper} cannot be reached") from None
            self._client = client
        return self._client

    def _data(self, path: str) -> bytes | None:
        found = self._read(path)
        return None if found is None else found[0]

    def _read(self, path: str) -> tuple[bytes, Any] | None:
        found = self._ask("get", path)
        return None if found is None else (bytes(found[0]), found[1])

    def _json(self, path: str) -> dict[str, Any] | None:
        data = self._data(path)
        return None if data is None else dict(json.loads(data))

    def _children(self, path: str) -> list[str]:
        return list(self._ask("get_children", path) or ())

    def _ask(self, what: str, path: str) -> Any:
        """The result of a read with kazoo's client; None if the node does not exist."""
        try:
            try:
                return getattr(self._connected(), what)(path)
            except SessionExpiredError:
                # A busy machine. A reader owns no ephemeral nodes, so a new session will do.
                self.close()
                return getattr(self._connected(), what)(path)
        except NoNodeError:
            return None
        except (KazooException, KazooTimeoutError) as error:
            self.close()
            text = f"cannot read {path} in ZooKeeper: {type(error).__name__} {error}"
            raise KitError(text) from None
