"""Ctrl-C: Python's own handler for a while, and no traceback."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from ottla.pipelines.run.interrupt import end_quietly, interruptible


@pytest.fixture(autouse=True)
def _keep_handler() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


def handler_of(module: str) -> Callable[[int, object], None]:
    def handler(number: int, frame: object) -> None: ...

    handler.__module__ = module
    return handler


def test_pysparks_handler_gives_way_while_the_block_runs() -> None:
    of_pyspark = handler_of("pyspark.core.context")
    signal.signal(signal.SIGINT, of_pyspark)

    with interruptible():
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is of_pyspark


def test_the_users_handler_stays() -> None:
    of_user = handler_of("job")
    signal.signal(signal.SIGINT, of_user)

    with interruptible():
        assert signal.getsignal(signal.SIGINT) is of_user


def test_other_threads_change_nothing() -> None:
    of_pyspark = handler_of("pyspark.core.context")
    signal.signal(signal.SIGINT, of_pyspark)
    seen = []

    def run() -> None:
        with interruptible():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [of_pyspark]


def test_only_this_interrupt_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, value, trace: shown.append(value))
    interrupt, other = KeyboardInterrupt(), KeyboardInterrupt()

    end_quietly(interrupt)
    sys.excepthook(KeyboardInterrupt, interrupt, None)
    sys.excepthook(KeyboardInterrupt, other, None)

    assert shown == [other]
