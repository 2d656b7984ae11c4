"""Streams groups as the command line shows and changes them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.system.streams_member import Member
from tests.system.test_groups import fill

from ottla.cli.app import carry_out
from ottla.client.client import Client

OPTIONS = (
    "--config",
    "group.streams.initial.rebalance.delay.ms=0",
    "--config",
    "group.streams.min.assignment.interval.ms=0",
    "--config",
    "group.streams.assignment.interval.ms=0",
)


def test_the_commands_of_groups(new_broker: Any, capsys: pytest.CaptureFixture[str]) -> None:
    broker = new_broker(*OPTIONS)
    fill(broker.bootstrap, "t", 5)
    with Client(broker.bootstrap) as client:
        cluster = SimpleNamespace(client=client)

        def run(*words: str, code: int = 0) -> Any:
            assert carry_out(["group", *words], cluster) == code
            shown = capsys.readouterr()
            return json.loads(shown.out) if "--json" in words and code == 0 else shown.err

        member = Member(client, "g", "t")
        member.beat()
        (listed,) = run("list", "--json")
        assert listed == {"group": "g", "state": "not ready", "type": "streams"}
        member.join(8)
        (listed,) = run("list", "--json")
        assert listed == {"group": "g", "state": "stable", "type": "streams"}
        (shown,) = run("members", "g", "--json")
        (only,) = shown["members"]
        assert only["assignment"] == [
            {"topic": "g-counts-repartition", "partitions": [0, 1, 2, 3]},
            {"topic": "t", "partitions": [0, 1, 2, 3]},
        ]
        (described,) = run("describe", "g", "--json")
        assert (described["type"], len(described["partitions"])) == ("streams", 8)
        assert "1 member is reading" in run("reset", "g", "--to-earliest", "--yes", code=1)
        assert "topology" not in described
        member.describe_topology()
        (described,) = run("describe", "g", "--json")
        assert described["topology"] == [
            {
                "subtopology": "0",
                "node": "in",
                "kind": "source",
                "topics": ["t"],
                "stores": [],
                "successors": ["count"],
            },
            {
                "subtopology": "0",
                "node": "count",
                "kind": "processor",
                "topics": [],
                "stores": ["counts"],
                "successors": [],
            },
        ]
        assert described["assignor"] == "sticky"
        member.leave()
        moved = run("reset", "g", "--to-offset", "2", "--yes", "--json")
        assert {(each["topic"], each["after"]) for each in moved["partitions"]} == {("t", 2)}
        said = run("reset", "g", "--to-earliest", "--yes")
        assert "is added to it (g-counts-changelog)" in said
        (described,) = run("describe", "g", "--json")
        assert described["state"] == "empty"
        assert [each["lag"] for each in described["partitions"]] == [5] * 4
        run("delete-offsets", "g", "--topic", "t:0", "--yes")
        (described,) = run("describe", "g", "--json")
        assert len(described["partitions"]) == 3
        run("delete", "g", "--yes")
        assert run("list", "--json") == []
