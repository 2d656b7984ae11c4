"""A simulated broker: the shipped `Node` in its own process; its data folder survives kills."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from ottla.api.table import HANDLERS
from ottla.config import BrokerConfig
from ottla.node.node import Node
from simulation.loop import VirtualLoop
from simulation.process import Process
from simulation.tree_session import TreeHost

PORT: Final = 9092
FIRST_WALL_MS: Final = 1_700_000_000_000
STOPS_WITHIN_S: Final = 60


class VirtualClock:
    """`ottla.runtime.clock.Clock` with the time of the loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.ahead_ms = 0
        """How far its wall clock is ahead of the others', which may be negative."""
        self._loop = loop

    def now_ms(self) -> int:
        return FIRST_WALL_MS + self.ahead_ms + self._loop.now_ms

    def monotonic_ms(self) -> int:
        return self._loop.now_ms


class Broker:
    """One broker to start, kill, pause and stop; `note` writes a line of the transcript."""

    def __init__(
        self,
        number: int,
        loop: VirtualLoop,
        tree: TreeHost,
        folder: Path,
        settings: Mapping[str, str],
        note: Callable[[str], None],
        seed: int,
    ) -> None:
        self.number = number
        self.host = f"10.0.0.{number}"
        self.name = f"broker {number}"
        self.folder = folder
        self.process: Process | None = None
        self.node: Node | None = None
        self.clock = VirtualClock(loop)
        """The machine's: it goes on while the broker is down."""
        self.may_fail: Callable[[], bool] = lambda: False
        """Whether a fault may make the broker exit by itself now."""
        self.before_start: Callable[[], None] = lambda: None
        """Called before a process starts."""
        self.has_space: Callable[[], bool] = lambda: True
        """Whether its disk takes writes now."""
        self.failure: str | None = None
        """Why the broker exited by itself, although no fault makes it do that."""
        self._loop = loop
        self._tree = tree
        self._note = note
        self._random = Random(f"{seed} broker {number}")
        self._starting: asyncio.Task[None] | None = None
        self._leaving: Process | None = None
        address = f"PLAINTEXT://{self.host}:{PORT}"
        self._settings = {
            "node.id": str(number),
            "log.dirs": str(folder),
            "listeners": address,
            "advertised.listeners": address,
            "zookeeper.connect": "simulated:2181",
            **settings,
        }

    @property
    def is_up(self) -> bool:
        return self.process is not None

    @property
    def is_leaving(self) -> bool:
        """Whether it still runs, but was told to stop or may stop by itself for a failed write."""
        node = self.node
        if node is None:
            return False
        return self.process is self._leaving or node.storage_failure.will_stop

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.is_paused

    def start(self) -> None:
        """Start a process unless one is running."""
        if self.process is not None:
            return
        self.before_start()
        self._note(f"{self.name} starts")
        process = self.process = Process(self.host)
        self.node = process.context.run(self._make)
        task = self._starting = self._loop.start_in(process, self.node.start)
        task.add_done_callback(partial(self._started, process))

    def _make(self) -> Node:
        config = BrokerConfig.from_properties(self._settings)
        node = Node(config, HANDLERS, clock=self.clock, tree=self._tree, random=self._random)
        node.ends_by_itself(lambda: self._ended_itself(node))
        return node

    def _started(self, process: Process, task: asyncio.Task[None]) -> None:
        if self.process is process and not task.cancelled() and task.exception() is not None:
            # For example, ZooKeeper is unreachable: an operator or a supervisor restarts it.
            self._note(f"{self.name} could not start: {task.exception()!r}")
            self.kill()

    def _ended_itself(self, node: Node) -> None:
        # Without the temporary folder, whose name differs from run to run.
        reason = str(node.end_reason).replace(f"{self.folder}/", "")
        if not self.may_fail():
            self.failure = reason
            return
        self._note(f"{self.name} ends itself: {reason}")
        self._loop.driver.context.run(lambda: self._loop.create_task(self._stop_and_return()))

    async def _stop_and_return(self) -> None:
        """As by an operator: where the disk is still full, the end of that starts the broker."""
        await self.stop()
        if self.has_space():
            self.start()

    def kill(self) -> None:
        """SIGKILL: the process runs no more code; its files stay as they are."""
        process, node = self.process, self.node
        if process is None or node is None:
            return
        self._note(f"{self.name} is killed")
        self._loop.forget(process)
        self._loop.network.died(process)
        if hasattr(node, "store"):
            node.store.release()
        self.process = self.node = None

    def pause(self) -> None:
        """SIGSTOP."""
        if self.process is not None:
            self._note(f"{self.name} is paused")
            self.process.is_paused = True

    def resume(self) -> None:
        """SIGCONT."""
        if self.process is not None:
            self.process.is_paused = False

    async def stop(self) -> None:
        """SIGTERM: a controlled shutdown, and a kill if it takes too long."""
        process, node = self.process, self.node
        if process is None or node is None:
            return
        self._note(f"{self.name} leaves")
        self._leaving = process
        starting = self._starting
        assert starting is not None

        async def serve_to_its_end() -> None:
            # Like `ottla serve`: a signal during the start takes effect after it.
            await asyncio.wait([starting])
            if not starting.cancelled() and starting.exception() is None:
                await node.close()

        task = self._loop.start_in(process, serve_to_its_end)
        await asyncio.wait([task], timeout=STOPS_WITHIN_S)
        if self.process is process:
            self.kill()

    def lose_disk(self) -> None:
        """Delete the data folder: the next start finds it empty."""
        assert self.process is None
        self._note(f"{self.name} loses its disk")
        shutil.rmtree(self.folder, ignore_errors=True)
