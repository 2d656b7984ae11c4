"""What the commands for single brokers print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from ottla.cli.app import carry_out
from ottla.cli.cluster.kill import kill
from ottla.cli.cluster.running import complete_own_broker
from ottla.devcluster.layout import Layout, write_layout
from ottla.devcluster.requests import Request

ADDRESS = {"address": "127.0.0.1:9093"}


@pytest.mark.parametrize(
    ("command", "state", "more", "said"),
    [
        ("kill", "killed", {}, "Killed broker 2 (SIGKILL)."),
        ("stop", "stopped", {}, "Stopped broker 2."),
        ("pause", "paused", {}, "Paused broker 2 (SIGSTOP): it accepts connections, but does not"),
        ("resume", "running", {}, "Broker 2 continues."),
        ("restart", "running", ADDRESS, "Broker 2 is ready on 127.0.0.1:9093."),
        ("add", "running", ADDRESS, "Broker 2 is ready on 127.0.0.1:9093."),
    ],
)
def test_each_command_asks_the_running_cluster_and_prints_its_answer(
    command: str,
    state: str,
    more: dict[str, str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: list[Any] = []
    answer = {"broker": 2, "state": state, **more}
    monkeypatch.setattr(
        "ottla.cli.cluster.running.ask",
        lambda data, request: seen.append((data, request)) or answer,
    )
    words = ["cluster", command, *(["--rack", "a"] if command == "add" else ["2"])]
    assert carry_out([*words, "--data", "there"]) == 0
    assert capsys.readouterr().out.startswith(said)
    asked = Request("add", rack="a") if command == "add" else Request(command, 2)
    assert seen == [(Path("there"), asked)]
    assert carry_out([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == answer


def test_brokers_of_the_folder_complete(tmp_path: Path) -> None:
    context = click.Context(kill)
    context.params = {"data": tmp_path}
    assert complete_own_broker(context, kill.params[0], "") == []
    write_layout(tmp_path, Layout(12, 9092, 2181))
    assert complete_own_broker(context, kill.params[0], "1") == ["1", "10", "11", "12"]
