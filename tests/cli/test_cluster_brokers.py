"""What the commands for single brokers print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from ottla.cli import cluster_brokers
from ottla.cli.app import root
from ottla.cli.cluster_brokers import SENTENCES, complete_own_broker
from ottla.cli.main import main
from ottla.devcluster.layout import Layout, write_layout
from ottla.devcluster.requests import Request


@pytest.mark.parametrize("command", sorted(SENTENCES))
def test_each_command_asks_the_running_cluster_and_prints_its_answer(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Any] = []
    document = {"broker": 2, "state": "running", "address": "127.0.0.1:9093"}
    monkeypatch.setattr(
        cluster_brokers, "ask", lambda data, request: seen.append((data, request)) or document
    )
    words = ["cluster", command, *(["--rack", "a"] if command == "add" else ["2"])]
    assert main([*words, "--data", "there"]) == 0
    assert "roker 2" in capsys.readouterr().out
    asked = Request("add", rack="a") if command == "add" else Request(command, 2)
    assert seen == [(Path("there"), asked)]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == document


def test_brokers_of_the_folder_complete(tmp_path: Path) -> None:
    context = click.Context(root().leaves()["cluster kill"])
    context.params = {"data": tmp_path}
    assert complete_own_broker(context, "") == []
    write_layout(tmp_path, Layout(12, 9092, 2181))
    assert complete_own_broker(context, "1") == ["1", "10", "11", "12"]
