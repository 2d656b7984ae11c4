"""Why groups rebalanced, asked of a real broker."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.system.share_member import Member
from tests.system.test_consumer_groups import OPTIONS, NewReader
from tests.system.test_groups import Reader, fill, until

from ottla.cli.app import carry_out
from ottla.cli.group import history
from ottla.client.admin.configs import alter_settings
from ottla.client.client import Client


def shown(client: Client, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    assert carry_out(["group", "history", *words], SimpleNamespace(client=client)) == code
    captured = capsys.readouterr()
    return json.loads(captured.out) if "--json" in words else captured.out + captured.err


def whys(entry: dict[str, Any]) -> list[str]:
    return [each["why"] for each in entry["causes"]]


def test_a_group_of_each_kind_and_a_restart(
    new_broker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    options = (*OPTIONS, "--config", "group.share.assignment.interval.ms=0")
    broker = new_broker(*options, data=data)
    fill(broker.bootstrap, "t", 1)
    classic = Reader(broker.bootstrap, "old").subscribe("t")
    until(lambda: len(classic.owns) == 4, classic)
    classic.client.close()
    consumer = NewReader(broker.bootstrap, "new", **{"client.id": "app-1"}).subscribe("t")
    until(lambda: len(consumer.owns) == 4, consumer)
    consumer.client.close()
    with Client(broker.bootstrap) as client:
        member = Member(client, "shared")
        member.join("t", 4)
        old = shown(client, capsys, "old", "--json")
        assert [each["type"] for each in old] == ["classic", "classic"]
        assert [whys(each) for each in old] == [["joined"], ["left"]]
        assert old[0]["moves"][0]["partitions"] == "0-3"
        assert old[0]["causes"][0]["member"]["client_id"] == "rdkafka"
        new = shown(client, capsys, "new", "--json")
        assert (new[0]["type"], new[0]["end"], new[0]["moved"]) == ("consumer", "stable", 4)
        assert new[0]["causes"][0]["member"]["client_id"] == "app-1"
        share = shown(client, capsys, "shared", "--json")
        assert (share[0]["type"], share[0]["end"], whys(share[0])) == (
            "share",
            "stable",
            ["joined"],
        )
        text = shown(client, capsys, "new")
        assert "stable after" in text
        assert "app-1 (127.0.0.1) joined" in text
        assert "t 0-3: nobody -> app-1" in text
        unknown = shown(client, capsys, "nwe", code=1)
        assert "there is no group 'nwe'. Did you mean 'new'?" in unknown
    broker.stop()
    again = new_broker(*options, data=data)
    with Client(again.bootstrap) as client:
        assert shown(client, capsys, "old", "--json") == old
        assert shown(client, capsys, "new", "--json")[: len(new)] == new


def test_a_history_is_followed(
    new_broker: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = new_broker("--config", "group.share.assignment.interval.ms=0")
    fill(broker.bootstrap, "t", 1)
    with Client(broker.bootstrap) as client:
        members = [Member(client, "g"), Member(client, "g")]
        members[0].join("t", 4)
        done: list[float] = []

        def sleep(seconds: float) -> None:
            """Between two questions the second member joins, and then it is enough."""
            if done:
                raise KeyboardInterrupt
            done.append(seconds)
            members[1].join("t", 2)
            members[0].beat()

        monkeypatch.setattr(history, "time", SimpleNamespace(sleep=sleep))
        text = shown(client, capsys, "g", "--follow", "--every", "0.5", code=130)
        before, _, after = text.rpartition("epoch ")
        assert done == [0.5]
        assert "joined" in before
        assert "2 members" in after


def test_a_member_that_comes_back_too_late_is_told_of(
    new_broker: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = new_broker(
        *OPTIONS,
        *("--config", "group.share.min.session.timeout.ms=100"),
        *("--config", "group.share.min.heartbeat.interval.ms=100"),
    )
    fill(broker.bootstrap, "t", 1)
    with Client(broker.bootstrap) as client:
        member = Member(client, "g")
        member.join("t", 4)
        # Not from the beginning: a busy machine may take longer than that between two heartbeats.
        settings = {"share.session.timeout.ms": "300", "share.heartbeat.interval.ms": "100"}
        alter_settings(client, "group", "g", settings, [])
        member.beat()
        until_s = time.monotonic() + 30
        while shown(client, capsys, "g", "--json")[-1]["end"] != "empty":
            assert time.monotonic() < until_s
            time.sleep(0.05)
        with pytest.raises(AssertionError, match="error_code"):
            member.beat()
        *_, expired, late = shown(client, capsys, "g", "--json")
        assert (whys(expired), whys(late)) == (["session_expired"], ["came_late"])
        assert expired["causes"][0]["waited_ms"] == 300
        assert late["causes"][0]["waited_ms"] > 0
