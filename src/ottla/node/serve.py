"""The process: runs a broker from its settings until a signal stops it."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING

from ottla.cluster.errors import StartError
from ottla.config import BrokerConfig, ConfigError
from ottla.coordination.embedded_store import StoreError
from ottla.coordination.tree import (
    ConnectionLostError,
    CoordinationError,
    SessionExpiredError,
)
from ottla.log.errors import DataFolderError
from ottla.network.handlers import Handlers
from ottla.node.handler_imports import HandlerImports
from ottla.node.loop_watchdog import LoopWatchdog
from ottla.node.node import Node
from ottla.protocol.errors import ApiError
from ottla.runtime.clock import Clock
from ottla.runtime.freed_memory import keep_freed_memory
from ottla.runtime.garbage_collection import OldObjects, no_collection

if TYPE_CHECKING:
    # Imports http and email: a megabyte that only /metrics needs.
    from wsgiref.simple_server import WSGIServer

EXIT_STOPPED = 0
EXIT_FAILED = 1
EXIT_BAD_SETTING = 2
SWITCH_INTERVAL_S = 0.0003
"""How long the event loop waits for Python's global lock while a thread works: for each of its
callbacks. Python's own 5 ms made a ping beside long work wait for 20 to 80 ms. With 0.3 instead of
1 ms the median ping beside compaction is 0.6 instead of 1.3 ms, and compaction takes as long.
"""
MACOS_MAX_FILES = 10_240
"""OPEN_MAX: macOS reports no hard limit, and refuses a soft limit above this."""


def _print_failure(why: str) -> None:
    print(f"ottla serve: {why}", file=sys.stderr)


def serve(
    properties: Mapping[str, str],
    handlers: Handlers,
    *,
    log_level: str = "info",
    announce: bool = True,
    clock: Clock | None = None,
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
    beside: Callable[[Node], AbstractAsyncContextManager[object]] = nullcontext,
    print_failure: Callable[[str], None] = _print_failure,
) -> int:
    """Runs a broker until SIGTERM or SIGINT; returns the exit code.

    Its log goes to standard error, from `log_level` on; with `announce`, standard output gets one
    line when it is ready. `clock` and `new_loop` default to the machine's clock and the fastest
    loop; `beside` opens what runs beside the broker while it serves.

    If it cannot start, `print_failure` gets one line, and prints it on stderr by default. The exit
    code is 2 for a wrong setting, 1 for a port in use, a folder in use or unreadable, a full disk,
    or an unreachable ensemble.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    try:
        config = BrokerConfig.from_properties(properties)
        for note in (*config.notes, *open_listeners(config)):
            logging.getLogger("ottla.config").warning("%s", note)
        raise_file_limit()
        keep_freed_memory()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        node = Node(config, handlers, clock=clock)
        imports = HandlerImports(handlers)
        return run(_serve(node, imports, beside, print_failure, announce=announce), new_loop)
    except (ConnectionLostError, SessionExpiredError) as error:
        # Their text is only a path, which can be any path of the start.
        print_failure(f"lost ZooKeeper during the start ({error!r})")
        return EXIT_FAILED
    except ConfigError as error:
        print_failure(str(error))
        return EXIT_BAD_SETTING
    except (ApiError, CoordinationError, DataFolderError, StartError, StoreError, OSError) as error:
        print_failure(str(error))
        return EXIT_FAILED


def open_listeners(config: BrokerConfig) -> list[str]:
    """A warning if other machines can connect, and nobody asks them who they are."""
    open_to_others = [
        str(each)
        for each in config.endpoints
        if not each.only_this_machine and not config.asks_who(each)
    ]
    if not open_to_others:
        return []
    return [
        f"Other machines can read and write everything without a password: "
        f"{', '.join(open_to_others)} has no authentication. To allow only this machine, listen "
        "on 127.0.0.1"
    ]


def raise_file_limit() -> None:
    """Raises the limit of open files to the hard limit: each connection needs one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, MACOS_MAX_FILES):
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            return


def run(
    main: Coroutine[object, object, int],
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> int:
    """Runs `main` on the loop given, else on uvloop, or on asyncio's own loop if uvloop is not
    installed.
    """
    with asyncio.Runner(loop_factory=new_loop or _fastest_loop()) as runner:
        return runner.run(main)


def _fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(
    node: Node,
    imports: HandlerImports,
    beside: Callable[[Node], AbstractAsyncContextManager[object]],
    print_failure: Callable[[str], None],
    *,
    announce: bool,
) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node.ends_by_itself(stop.set)
    with no_collection():
        await node.start()
    old_objects = OldObjects()
    old_objects.begin()
    metrics = None
    watchdog = _watchdog(node)
    watchdog.start()
    imports.start()
    try:
        metrics = _start_metrics(node, watchdog)
        async with beside(node):
            if announce:
                _print_ready(node)
            await stop.wait()
    finally:
        if metrics is not None:
            await asyncio.to_thread(metrics.shutdown)
        await node.close()
        imports.stop()
        watchdog.stop()
        old_objects.end()
    if node.end_reason is not None:
        print_failure(node.end_reason)
        return EXIT_FAILED
    return EXIT_STOPPED


def _watchdog(node: Node) -> LoopWatchdog:
    config = node.config
    return LoopWatchdog(
        node.last_request,
        give_up=node.membership.abandon_session if config.zookeeper_connect else None,
        give_up_after_ms=config.zookeeper_session_timeout_ms,
    )


def _start_metrics(node: Node, watchdog: LoopWatchdog) -> WSGIServer | None:
    listener = node.config.ottla_metrics_listener
    if listener is None:
        return None
    from ottla.node.metrics import serve_metrics

    host, _, port = listener.rpartition(":")
    try:
        return serve_metrics(node, watchdog, host.strip("[]") or "0.0.0.0", int(port))
    except OSError as error:
        why = f"cannot answer /metrics on {listener}: {error.strerror}"
        raise StartError(why) from None


def _print_ready(node: Node) -> None:
    addresses = ", ".join(_address(each.host, each.port) for each in node.endpoints)
    topics = sum(not topic.is_internal for topic in node.image.topics.values())
    line = (
        f"Ottla is ready on {addresses} (broker {node.config.id},"
        f" {topics} topic{'' if topics == 1 else 's'},"
        f" data in {node.config.data_folder}). Ctrl-C stops it."
    )
    if sys.stdout.isatty():
        line = fill(line, get_terminal_size().columns, break_on_hyphens=False)
    try:
        print(line, flush=True)
    except OSError as error:
        # What is buffered would fail again at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise StartError(f"cannot write to standard output: {error.strerror}") from None


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host or '0.0.0.0'}:{port}"
