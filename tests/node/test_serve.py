import asyncio
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ottla.api.table import HANDLERS
from ottla.node.node import Node
from ottla.node.serve import (
    EXIT_BAD_SETTING,
    EXIT_FAILED,
    EXIT_STOPPED,
    raise_file_limit,
    run,
    serve,
)
from ottla.runtime.clock import SystemClock


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The output on stderr: one line."""
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("ottla serve: ")
    return line


def test_a_wrong_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert serve({"num.partitions": "none"}, HANDLERS) == EXIT_BAD_SETTING
    assert "num.partitions" in error_line(capsys)


def test_a_folder_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.touch()
    given = {"log.dirs": str(file), "listeners": "PLAINTEXT://127.0.0.1:0"}
    assert serve(given, HANDLERS) == EXIT_FAILED
    assert str(file) in error_line(capsys)


def test_a_port_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        given = {"log.dirs": str(tmp_path / "d"), "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
        assert serve(given, HANDLERS) == EXIT_FAILED
    assert "in use" in error_line(capsys)


def test_a_port_in_use_for_metrics_is_a_clean_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        listen = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
        assert serve({**listen, "ottla.metrics.listener": address}, HANDLERS) == EXIT_FAILED
    assert address in error_line(capsys)
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("ensemble", ["127.0.0.1:1", "127.0.0.1:99999", "127.0.0.1:2181/a//b"])
def test_an_unreachable_or_invalid_ensemble(
    ensemble: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0", "node.id": "1"}
    given |= {"zookeeper.connect": ensemble, "zookeeper.connection.timeout.ms": "200"}
    assert serve(given, HANDLERS) == EXIT_FAILED
    *logged, line = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("ottla serve: ")
    assert ensemble in line
    assert not [each for each in logged if "Traceback" in each]


def test_the_open_file_limit_is_raised_to_the_hard_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1000), hard))
    try:
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_macos_allows_fewer_open_files_than_its_hard_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed: list[tuple[int, int]] = []

    def setrlimit(_kind: int, limits: tuple[int, int]) -> None:
        if limits[0] > 10_240:
            raise ValueError("not allowed to raise maximum limit")
        allowed.append(limits)

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, 2**63 - 1))
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    raise_file_limit()
    assert allowed == [(10_240, 2**63 - 1)]


def test_runs_with_and_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> int:
        return 7

    assert run(main()) == 7
    monkeypatch.setitem(__import__("sys").modules, "uvloop", None)
    assert run(main()) == 7


def test_clock_loop_and_company_from_outside(tmp_path: Path) -> None:
    class OwnClock:
        now_ms = staticmethod(SystemClock().now_ms)
        monotonic_ms = staticmethod(SystemClock().monotonic_ms)

    class OwnLoop(asyncio.SelectorEventLoop):
        pass

    seen: list[object] = []

    @asynccontextmanager
    async def beside(node: Node) -> AsyncIterator[None]:
        seen.extend((type(node.clock), type(asyncio.get_running_loop())))
        os.kill(os.getpid(), signal.SIGTERM)
        yield
        seen.append(node.closing)

    given = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    code = serve(given, HANDLERS, clock=OwnClock(), new_loop=OwnLoop, beside=beside)
    assert (code, seen) == (EXIT_STOPPED, [OwnClock, OwnLoop, False])


def test_a_disk_that_is_full_during_the_start_ends_the_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker replicates as soon as it knows the leaders, while it still starts."""
    start = Node.start

    async def start_on_a_full_disk(node: Node) -> None:
        node.storage_failure.reason = "the disk is full"
        node.storage_failure.end()
        await start(node)

    monkeypatch.setattr(Node, "start", start_on_a_full_disk)
    given = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}
    assert serve(given, HANDLERS) == EXIT_FAILED
    assert capsys.readouterr().err.splitlines()[-1] == "ottla serve: the disk is full"
    assert (tmp_path / ".kafka_cleanshutdown").exists()
