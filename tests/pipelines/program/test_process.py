"""The end of Spark's process and of this one, without either."""

import threading
from types import SimpleNamespace

import pytest

from ottla.pipelines.program import process
from ottla.pipelines.program.process import end_at_once, stop_spark


def test_the_end_at_once_does_not_wait(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    left: list[int] = []
    killed: list[bool] = []
    monkeypatch.setattr(process, "kill_spark", lambda: killed.append(True))
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    end_at_once(130, left.append)
    assert (left, killed) == ([130], [True])
    # A thread that waited for Spark has nothing to say any more.
    failing = threading.Thread(target=lambda: 1 / 0)
    failing.start()
    failing.join()
    assert capfd.readouterr().err == ""


def test_spark_may_have_ended_before_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[bool] = []
    monkeypatch.setattr(process, "kill_spark", lambda: killed.append(True))

    def refuse() -> None:
        raise ConnectionRefusedError

    stop_spark(SimpleNamespace(stop=refuse))
    assert killed == [True]
