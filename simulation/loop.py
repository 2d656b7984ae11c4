"""An asyncio event loop in virtual time, shared by all processes of a simulated cluster.

Time does not pass while callbacks run; it jumps to the next timer when none is ready. Each process
has its own first-in-first-out queue; the seed decides only which process runs next. Work for
threads runs on the loop too: it starts after a seeded delay and its result arrives after another.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context, copy_context
from random import Random
from typing import Any, Final, TypeVar

from simulation.network import Network
from simulation.process import CURRENT, Handle, Process

T = TypeVar("T")

MAX_CALLBACKS: Final = 20_000_000
"""A run that needs more is taken to be endless."""
MAX_THREAD_DELAY_S: Final = 0.003
DRIVER: Final = "10.0.2.1"
"""The address of the simulation itself, that is, of its operator and its checks."""


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop of a simulated cluster. `driver` is the process of the simulation itself."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random
        self.callbacks = 0
        self.stepped: Callable[[Process], None] = lambda process: None
        """Called after each callback of a process; an exception from it ends the run."""
        self.driver = Process(DRIVER)
        self.network = Network(self, random)
        self._now_s = 0.0
        self._processes: list[Process] = []
        self._timers: list[tuple[float, int, Handle]] = []
        """A heap, by time and then in the order of the calls."""
        self._timers_made = 0
        self._dead: list[Process] = []

    def time(self) -> float:
        return self._now_s

    @property
    def now_ms(self) -> int:
        return int(self._now_s * 1000)

    def run(self, main: Callable[[], Any]) -> Any:
        """Run the coroutine function to its end, in the driver's process."""
        task = self.driver.context.run(lambda: self.create_task(main()))
        return self.run_until_complete(task)

    def start_in(self, process: Process, main: Callable[[], Any]) -> asyncio.Task[Any]:
        """Start a coroutine function in a process."""
        return process.context.run(lambda: self.create_task(main()))

    # The interface of an asyncio loop.

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """Keep the task in its process: garbage collection would run its `finally`."""
        task: asyncio.Task[Any] = super().create_task(coro, **options)
        context: Context | None = options.get("context")
        process = (CURRENT.get() if context is None else context[CURRENT]) or self.driver
        process.tasks[task] = None
        task.add_done_callback(process.tasks.pop)
        return task

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        # Half of all handles are made here: so it makes few calls.
        if context is None:
            context = copy_context()
        process = context.get(CURRENT) or self.driver
        handle = Handle(self._now_s, callback, args, context, process)
        if process.is_alive:
            if not process.ready:
                self._processes.append(process)
            process.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Handle:
        if context is None:
            context = copy_context()
        handle = Handle(when, callback, args, context, context.get(CURRENT) or self.driver)
        self._timers_made += 1
        heapq.heappush(self._timers, (when, self._timers_made, handle))
        return handle

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Handle:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        done: asyncio.Future[T] = self.create_future()

        def finish(result: T | None, error: BaseException | None) -> None:
            if done.cancelled():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]

        def work() -> None:
            result, error = None, None
            try:
                result = func(*args)
            except Exception as raised:  # noqa: BLE001 - as in a thread: the caller gets it
                error = raised
            self.call_later(self._thread_delay_s(), finish, result, error)

        self.call_later(self._thread_delay_s(), work)
        return done

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        return self.network.listen(CURRENT.get(), protocol_factory, host, port)

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        return await self.network.connect(CURRENT.get(), protocol_factory, str(host), int(port))

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        return [(None, None, None, "", (host, port))]

    def _thread_delay_s(self) -> float:
        return self.random.random() * MAX_THREAD_DELAY_S

    def _enqueue(self, handle: Handle) -> None:
        process = handle.process
        if not process.is_alive:
            return
        if not process.ready:
            self._processes.append(process)
        process.ready.append(handle)

    def _run_once(self) -> None:
        """Run callbacks until the loop is stopped. (asyncio's `run_forever` would call this after
        each of them.)
        """
        timers, processes, draw = self._timers, self._processes, self.random.random
        pop = heapq.heappop
        while not self._stopping:  # type: ignore[attr-defined]
            while timers and timers[0][0] <= self._now_s:
                due = pop(timers)[2]
                if not due.is_cancelled:
                    self._enqueue(due)
            # Each of these has a callback that is ready, and is alive. Most often there is one.
            runnable = processes
            if len(processes) != 1 or processes[0].is_paused:
                runnable = [each for each in processes if not each.is_paused]
            if not runnable:
                self._jump()
                continue
            self.callbacks += 1
            assert self.callbacks < MAX_CALLBACKS, "the simulation does not end"
            process = runnable[0 if len(runnable) == 1 else int(draw() * len(runnable))]
            ready = process.ready
            handle = ready.popleft()
            if not ready:
                processes.remove(process)
            if not handle.is_cancelled:
                self._run(handle)
                self.stepped(process)

    def _run(self, handle: Handle) -> None:
        try:
            handle.context.run(handle.callback, *handle.args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - as asyncio's handles do
            message = f"Exception in callback {handle.callback!r}"
            self.call_exception_handler({"message": message, "exception": error})

    def _jump(self) -> None:
        timers = self._timers
        while timers and timers[0][2].is_cancelled:
            heapq.heappop(timers)
        assert timers, "nothing is left to run and nobody has ended the loop"
        self._now_s = max(self._now_s, timers[0][0])

    def forget(self, process: Process) -> None:
        """Drop a killed process: its callbacks never run, its tasks neither run nor end."""
        process.kill()
        self._dead.append(process)
        for task in process.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        if process in self._processes:
            self._processes.remove(process)

    def _process_events(self, event_list: Any) -> None:
        """No selector: there are no outside events."""

    def _write_to_self(self) -> None:
        """No other thread wakes this loop."""
