"""`ottla transaction hanging`: what hangs, and the command that ends it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.app import carry_out
from ottla.cli.transaction import hanging
from ottla.client.admin.transactions import OpenProducer
from ottla.client.topic_partition import TopicPartition

WRITTEN = OpenProducer("t", 0, 7, 3, 4, 12, 1_700_000_055_000)
CLUSTER = SimpleNamespace(client=None)


class Known:
    """A cluster with topic t."""

    topics = ("t",)

    def __init__(self, _client: object) -> None:
        pass

    def partitions(self, _topic: str | None) -> list[TopicPartition]:
        return [TopicPartition("t", 0)]


def run(
    monkeypatch: pytest.MonkeyPatch, found: list[OpenProducer], why: dict[Any, str], *words: str
) -> int:
    monkeypatch.setattr(hanging, "Transactions", Known)
    monkeypatch.setattr(hanging, "find_hanging", lambda *_: (found, why))
    return carry_out(["transaction", "hanging", *words], CLUSTER)


def test_hanging_as_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, [WRITTEN], {}) == 0
    head, row, said = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "topic"
    assert row.split() == ["t", "0", "12", "7", "3", "2023-11-14", "22:14:15.000", "UTC"]
    assert said.endswith("ottla transaction abort --topic t --partition 0 --producer 7")


def test_nothing_hangs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, [], {}, "--written-before", "2m") == 0
    assert "No hanging transactions without a write in the last 2 min" in capsys.readouterr().err
    assert run(monkeypatch, [], {}, "-t", "u") == 1
    assert "there is no topic 'u'" in capsys.readouterr().err


def test_partitions_that_were_not_searched_are_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = {TopicPartition("t", 0): "no leader"}
    assert run(monkeypatch, [], why) == 1
    assert capsys.readouterr().err == (
        "ottla transaction hanging: 1 partitions were not searched. t-0: no leader.\n"
    )
