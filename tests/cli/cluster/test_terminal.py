"""What `ottla cluster start` prints, the signals that end it, and its exit codes."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.app import carry_out
from ottla.cli.cluster.terminal import Printed, interrupted_by_signals
from ottla.cli.failures import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE
from ottla.devcluster import supervisor
from ottla.devcluster.errors import DevClusterError, OptionError
from ottla.security.development.secure_folder import SecureFolder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_as_ctrl_c_does(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
            signal.raise_signal(number)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_with_nohup_it_survives_the_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupted_by_signals():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_one_line_for_each_process_and_each_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = Printed()
    printed.process_is_up("ZooKeeper", "h:2181", "")
    printed.process_is_up("broker 1", "h:9092", "0.4 s")
    printed.cluster_is_ready(tmp_path, "h:9092", None)
    printed.note("broker 1: \x1b[2J")
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "ZooKeeper   h:2181",
        "broker 1    h:9092                 0.4 s",
        f"Ready. Data and logs are in {tmp_path}. Ctrl-C stops it.",
        "  export OTTLA_BOOTSTRAP=h:9092",
    ]
    assert shown.err == "broker 1: \\x1b[2J\n"


def test_a_secured_cluster_says_how_to_use_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = SecureFolder(tmp_path, {"admin": "secret"}, ("the user admin",))
    Printed().cluster_is_ready(tmp_path, "h:9092,h:9093", folder)
    said = capsys.readouterr().out
    assert "password secret (shown this once)" in said
    assert "ottla topic list --profile secure" in said
    assert "OTTLA_BOOTSTRAP" not in said


def ended(monkeypatch: pytest.MonkeyPatch, how: bool | DevClusterError) -> int:
    """The exit code of a cluster that ends so."""

    def run(**_options: Any) -> bool:
        if isinstance(how, DevClusterError):
            raise how
        return how

    monkeypatch.setattr(supervisor, "run_cluster", run)
    return carry_out(["cluster", "start"])


def test_each_way_to_end_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, True) == EXIT_INTERRUPTED
    assert ended(monkeypatch, False) == EXIT_FAILED
    for error, code in ((DevClusterError, EXIT_FAILED), (OptionError, EXIT_USAGE)):
        assert ended(monkeypatch, error("why", "what else")) == code
        assert capsys.readouterr().err == "ottla cluster start: why\n  what else\n"
