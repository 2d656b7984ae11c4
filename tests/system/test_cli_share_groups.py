"""Share groups as the command line shows and changes them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.system.share_member import Member
from tests.system.test_groups import fill

from ottla.cli.app import carry_out
from ottla.client.client import Client

OPTIONS = ("--config", "group.share.assignment.interval.ms=0")


def test_the_commands_of_groups(new_broker: Any, capsys: pytest.CaptureFixture[str]) -> None:
    broker = new_broker(*OPTIONS)
    fill(broker.bootstrap, "t", 5)
    with Client(broker.bootstrap) as client:
        settings = {"bootstrap.servers": broker.bootstrap, "client.id": "test"}
        cluster = SimpleNamespace(client=client, bootstrap=broker.bootstrap, settings=settings)

        def run(*words: str, code: int = 0) -> Any:
            assert carry_out(["group", *words], cluster) == code
            shown = capsys.readouterr()
            return json.loads(shown.out) if "--json" in words and code == 0 else shown.err

        def journey(offset: int) -> Any:
            words = ("journey", "t", "0", str(offset), "--group", "g", "--json")
            assert carry_out([*words], cluster) == 0
            asked = json.loads(capsys.readouterr().out)["asked_group"]
            return asked["state"], [each["why"] for each in asked["reasons"]]

        members = [Member(client, "g"), Member(client, "g")]
        members[0].join("t", 4)
        members[1].join("t", 2)
        (listed,) = run("list", "--json")
        assert listed == {"group": "g", "state": "stable", "type": "share"}
        (shown,) = run("members", "g", "--json")
        assert (shown["state"], shown["assignor"], len(shown["members"])) == ("stable", "simple", 2)
        (described,) = run("describe", "g", "--json")
        assert (described["type"], len(described["partitions"])) == ("share", 4)
        assert {each["committed_offset"] for each in described["partitions"]} == {None}
        assert journey(3) == ("not_yet", ["shared"])
        assert "2 members are reading" in run("reset", "g", "-t", "t", "--to-earliest", code=1)
        for member in members:
            member.leave()
        moved = run("reset", "g", "--topic", "t", "--to-offset", "2", "--json")
        assert {each["after"] for each in moved["partitions"]} == {2}
        assert journey(1) == ("done", [])
        assert journey(3) == ("not_yet", ["no_members"])
        (described,) = run("describe", "g", "--json")
        assert described["state"] == "empty"
        assert [each["lag"] for each in described["partitions"]] == [3] * 4
        refused = run("delete-offsets", "g", "--topic", "t:0", "--yes", code=2)
        assert "a share group forgets whole topics" in refused
        deleted = run("delete-offsets", "g", "--topic", "t", "--yes", "--json")
        assert len(deleted["partitions"]) == 4
        (described,) = run("describe", "g", "--json")
        assert described["partitions"] == []
        run("delete", "g", "--yes")
        assert run("list", "--json") == []
