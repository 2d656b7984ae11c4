"""Each option of `ottla serve` reaches the broker."""

from __future__ import annotations

import click
import pytest

from ottla.cli.app import carry_out
from ottla.cli.serve import serve
from ottla.cli.serve_options import ServeOptions, parse

WORDS = [
    *("--listen", "127.0.0.1:0", "--advertise", "here:9", "--data", "d", "--properties", "p"),
    *("--id", "7", "--zookeeper", "z:1/a", "--rack", "r", "--config", "a=1", "-c", "b=2"),
    *("--log-level", "error", "-q"),
]


def started(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> ServeOptions:
    given: list[ServeOptions] = []

    def run(options: ServeOptions) -> int:
        given.append(options)
        return 3

    monkeypatch.setattr("ottla.cli.serve.run", run)
    assert carry_out(["serve", *words]) == 3
    return given[0]


def test_all_options(monkeypatch: pytest.MonkeyPatch) -> None:
    options = started(monkeypatch, WORDS)
    assert options == ServeOptions(
        listen="127.0.0.1:0",
        advertise="here:9",
        data="d",
        properties="p",
        node_id="7",
        zookeeper="z:1/a",
        rack="r",
        config=["a=1", "b=2"],
        log_level="error",
        quiet=True,
    )


def test_the_short_way_past_click_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ottla serve` starts without click if it can: see `parse`."""
    assert parse(WORDS) == started(monkeypatch, WORDS)
    assert parse([]) == started(monkeypatch, []) == ServeOptions()


def complete(incomplete: str) -> list[str]:
    (level,) = (each for each in serve.params if each.name == "log_level")
    return [each.value for each in level.shell_complete(click.Context(serve), incomplete)]


def test_levels_are_completed() -> None:
    assert complete("") == ["debug", "info", "warning", "error"]
    assert complete("e") == ["error"]
    assert complete("E") == []
