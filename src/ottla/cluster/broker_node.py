"""This broker's node, /brokers/ids/N: it proves to the cluster that one process has the id N.

A node of another session is not ours (KafkaZkClient.CheckedEphemeral.getAfterNodeExists): a process
that runs on a copy of our folder, a restored backup or a cloned machine, has our id and our
directory id, too. Apache Kafka does not start then, also not after a kill, until the session of the
killed process is over. Here a restart takes the node over at once if the former process is proved
to be dead: its registration names the lock that this process holds now (`storage.folder_lock`).
A node of our own last session is ours, too: ZooKeeper may delete it late (ZOOKEEPER-2985,
KAFKA-7165).

While it runs, a broker whose id another process has registered must stop: both would lead the same
partitions in the same epochs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from ottla.cluster.errors import IdTakenError
from ottla.controller import layout
from ottla.controller.image import BrokerImage
from ottla.coordination.tree import (
    ANY_VERSION,
    BadVersionError,
    Coordination,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Operation,
    SetData,
    TreeNode,
    Watch,
)


class Folder(NamedTuple):
    """A data folder and the process on it."""

    directory_id: str
    lock: str | None
    """The file that the process has locked; None if that is not known."""

    def is_held_by_one(self, other: Folder) -> bool:
        """Whether one process at a time can be on the two: it is the same folder."""
        return self == other and self.lock is not None


class BrokerNode:
    """Puts and checks the node of one broker; see the module's text."""

    def __init__(self, broker_id: int, folder: Folder) -> None:
        self.path = layout.broker_path(broker_id)
        self._broker_id = broker_id
        self._folder = folder
        self._last_session: int | None = None
        """The last session of this process that had the node."""

    async def put(self, session: Coordination, data: bytes) -> TreeNode:
        """Creates the node if no other process has one. Returns the node.

        Raises IdTakenError if another process has one; CoordinationError.
        """
        while True:
            # The lasting node first: see `layout`.
            fence = await session.get(layout.REGISTRATIONS)
            there = await session.exists(self.path)
            writes: list[Operation] = [Create(self.path, data, ephemeral=True)]
            version = ANY_VERSION
            if there is not None:
                if there.owner == session.number:
                    self._last_session = session.number
                    return there
                self._check_own(there)
                writes.insert(0, Delete(self.path, there.version))
                version = fence.version
            # Something has changed meanwhile: look again.
            with suppress(NodeExistsError, NoNodeError, BadVersionError):
                await session.multi([*writes, SetData(layout.REGISTRATIONS, b"", version)])

    async def find(self, session: Coordination, watch: Watch) -> TreeNode | None:
        """This session's node; None if it must be put. `watch` waits for a change.

        Raises IdTakenError if another process has one; CoordinationError.
        """
        there = await session.exists(self.path, watch=watch)
        if there is None:
            return None
        if there.owner == session.number:
            self._last_session = session.number
            return there
        self._check_own(there)
        return None

    def _check_own(self, there: TreeNode) -> None:
        """Raises IdTakenError unless this process, or a dead one on this folder, made the node."""
        if there.owner == self._last_session:
            return
        number, own = self._broker_id, self._folder
        other = layout.read_broker(number, there.data)
        lock = layout.read_folder_lock(number, there.data)
        if own.is_held_by_one(Folder(other.directory_id or "", lock)):
            return
        raise taken(other, own)


def taken(other: BrokerImage, folder: Folder) -> IdTakenError:
    """The error that another process is registered under the id of the broker on `folder`."""
    address = next((f"{each.host}:{each.port}" for each in other.endpoints), "no address")
    whose = (
        "another broker with this id"
        if other.directory_id != folder.directory_id
        else "a broker with this id and a copy of this data folder"
    )
    return IdTakenError(other.broker_id, whose, address)
