"""The command line against a real broker, as typed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

OTTLA = [sys.executable, "-m", "ottla"]
WITHIN_S = 120
NUMBERS = count(1)


class Typed:
    """Types commands at one broker."""

    def __init__(self, bootstrap: str) -> None:
        self.environment = {**os.environ, "OTTLA_BOOTSTRAP": bootstrap}
        for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
            self.environment.pop(name, None)

    def run(
        self, *words: object, data: bytes = b"", code: int = 0
    ) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [*OTTLA, *map(str, words)],
            input=data,
            capture_output=True,
            env=self.environment,
            timeout=WITHIN_S,
            check=False,
        )
        assert done.returncode == code, done.stderr.decode()
        assert b"Traceback" not in done.stderr
        return done

    def json(self, *words: object, **given: Any) -> Any:
        return json.loads(self.run(*words, "--json", **given).stdout)

    def start(self, *words: object, **given: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*OTTLA, *map(str, words)], env=self.environment, **given)


@pytest.fixture
def cli(broker: Any) -> Typed:
    return Typed(broker.bootstrap)


@pytest.fixture
def topic(cli: Typed) -> str:
    """A fresh topic of three partitions."""
    name = f"cli-{next(NUMBERS)}"
    cli.run("topic", "create", name, "--partitions", 3)
    return name


def lines(done: subprocess.CompletedProcess[bytes]) -> list[bytes]:
    return done.stdout.splitlines()


def test_topic_from_its_making_to_its_end(cli: Typed) -> None:
    made = cli.json("topic", "create", "whole-life", "-p", 2, "-c", "retention.ms=86400000")
    assert made == [
        {"topic": "whole-life", "partitions": 2, "replication_factor": 1, "created": True}
    ]
    again = cli.run("topic", "create", "whole-life", code=1).stderr.decode()
    assert "already exists, with 2 partitions" in again
    assert not cli.json("topic", "create", "whole-life", "--if-not-exists")[0]["created"]
    assert {
        "topic": "whole-life",
        "partitions": 2,
        "replication_factor": 1,
        "internal": False,
    } in cli.json("topic", "list")
    fewer = cli.run("topic", "alter", "whole-life", "-p", 1, code=1).stderr.decode()
    assert "must be 2 or more, not 1" in fewer
    altered = cli.json("topic", "alter", "whole-life", "-p", 4, "-c", "cleanup.policy=compact")
    assert len(altered["partitions"]) == 4
    assert altered["config"] == {"retention.ms": "86400000", "cleanup.policy": "compact"}
    (described,) = cli.json("topic", "describe", "whole-life")
    assert described == altered
    assert described["partitions"][3] == {
        "partition": 3,
        "leader": 1,
        "replicas": [1],
        "racks": [None],
        "in_sync": [1],
        "leader_epoch": 0,
        "offline_replicas": [],
        "state": "ok",
        "start_offset": 0,
        "end_offset": 0,
        "offsets_error": None,
    }
    refused = cli.run("topic", "delete", "whole-life", code=2).stderr.decode()
    assert "ottla topic delete whole-life --yes" in refused
    cli.run("topic", "delete", "whole-life", "--yes")
    gone = cli.run("topic", "describe", "whole-lief", code=1).stderr.decode()
    assert "there is no topic 'whole-lief'" in gone


def test_nearest_topic_is_offered(cli: Typed, topic: str) -> None:
    cli.run("topic", "create", "flights")
    for words in (["topic", "describe"], ["consume"], ["produce"], ["config", "describe", "topic"]):
        said = cli.run(*words, "flihgts", code=1).stderr.decode()
        assert "there is no topic 'flihgts'. Did you mean 'flights'?" in said


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_with_keys_go_in_and_come_out(cli: Typed, topic: str, compression: str) -> None:
    data = b"".join(b"key-%d:value %d\n" % (number % 7, number) for number in range(500))
    said = cli.run("produce", topic, "-k", ":", "--compression", compression, data=data)
    assert said.stdout.decode() == f"Delivered 500 records to 3 partitions of {topic}.\n"
    out = lines(cli.run("consume", topic, "--keys"))
    assert sorted(out) == sorted(data.replace(b":", b"\t").splitlines())
    for key in range(7):
        own = [line for line in out if line.startswith(b"key-%d\t" % key)]
        assert own == sorted(own, key=lambda line: int(line.rsplit(b" ")[-1]))


def test_any_bytes_survive_json_out_and_in(cli: Typed, topic: str) -> None:
    records: list[dict[str, Any]] = [
        {"key": "k", "value": "v", "headers": [{"name": "h", "value": "x"}], "timestamp": 12345},
        {"key": None, "value": None},
        {"key": "/w==", "key_base64": True, "value": "AAH/", "value_base64": True},
        {"key": "", "value": "new\nline", "headers": [{"name": "b", "value": None}]},
    ]
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    assert cli.json("produce", topic, "--partition", 1, data=data)["delivered"] == 4
    first = cli.run("consume", topic, "--json")
    read = [json.loads(line) for line in lines(first)]
    for given, got in zip(records, read, strict=True):
        assert got.items() >= given.items()
    assert [each["offset"] for each in read] == [0, 1, 2, 3]
    cli.run("topic", "create", f"{topic}-copy", "-p", 3)
    cli.run("produce", f"{topic}-copy", "--json", data=first.stdout)
    second = cli.run("consume", f"{topic}-copy", "--json")
    assert second.stdout == first.stdout.replace(topic.encode(), f"{topic}-copy".encode())


def test_where_to_begin_and_end(cli: Typed, topic: str) -> None:
    cli.run("produce", topic, "--partition", 2, data=b"".join(b"%d\n" % n for n in range(10)))

    def read(*words: object) -> list[int]:
        return [int(line) for line in lines(cli.run("consume", topic, *words))]

    assert read() == list(range(10))
    assert read("--max", 3) == [0, 1, 2]
    assert read("-p", 2, "--offset", 7) == [7, 8, 9]
    assert read("-p", 2, "--offset", -2) == [8, 9]
    assert read("-p", 2, "--offset", 10) == []
    assert read("-p", 0, "-p", 1) == []
    assert read("--from", "end") == []
    assert read("--from", "1h") == list(range(10))
    assert read("--from", "2100-01-01") == []
    said = cli.run("consume", topic, "-p", 2, "--offset", 11, code=1).stderr.decode()
    assert "allowed are 0 to 10, the end" in said
    said = cli.run("consume", topic, "-p", 9, code=1).stderr.decode()
    assert "has partitions 0 to 2, not 9" in said


def committed(cli: Typed, group: str) -> int:
    """All partitions' committed offsets together."""
    (described,) = cli.json("group", "describe", group)
    return sum(each["committed_offset"] or 0 for each in described["partitions"])


def test_ends_selections_and_formats(cli: Typed, topic: str) -> None:
    # Recent: retention deletes records of last year at any moment.
    at_ms = int(time.time() * 1000) - 600_000
    rows = [
        {"key": f"k{n}", "value": f"v{n}", "partition": n % 3, "timestamp": at_ms + n * 1000}
        for n in range(30)
    ]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    cli.run("produce", topic, "--json", data=data)

    def values(*words: object) -> list[str]:
        return [line.decode() for line in lines(cli.run("consume", topic, *words))]

    assert values("--last", 4) == ["v26", "v27", "v28", "v29"]
    assert values("--last", 2, "--grep", "^v1") == ["v18", "v19"]
    assert values("--last", 1, "--partition", 1) == ["v28"]
    until = sorted(values("--until", at_ms + 5000))
    assert until == ["v0", "v1", "v2", "v3", "v4"]
    assert values("-p", 0, "--until-offset", 2) == ["v0", "v3"]
    assert values("-p", 0, "-o", 1, "--until-offset", 3) == ["v3", "v6"]
    assert sorted(values("--grep", "k(7|11)$")) == ["v11", "v7"]
    assert len(values("--grep", "v2", "--max", 5)) == 5
    assert values("--grep", "nothing") == []
    assert values("-p", 2, "--max", 1, "--format", "%t %p %o %T %k %S %s\\n") == [
        f"{topic} 2 0 {at_ms + 2000} k2 2 v2"
    ]
    # A group's place passes the records that did not match, but not those that --max left.
    assert values("-g", f"g-{topic}", "-n", 1, "--grep", "v")
    assert committed(cli, f"g-{topic}") == 1
    values("-g", f"g-{topic}", "--grep", "nothing")
    assert committed(cli, f"g-{topic}") == 30


def test_undelivered_records_are_told_and_the_others_are_there(cli: Typed, topic: str) -> None:
    data = b"small\n" + b"x" * 3_000_000 + b"\nsmall too\n"
    done = cli.run("produce", topic, "--partition", 0, data=data, code=1)
    said = done.stderr.decode()
    assert "1 of 3 records not delivered" in said
    assert "line 2" in said
    assert lines(cli.run("consume", topic)) == [b"small", b"small too"]


def test_bad_line_stops_and_what_was_before_is_delivered(cli: Typed, topic: str) -> None:
    done = cli.run("produce", topic, "-k", ":", data=b"a:1\nb:2\nno key\nc:3\n", code=1)
    assert done.stdout.startswith(b"Delivered 2 records")
    assert "line 3 has no key separator ':'" in done.stderr.decode()
    assert sorted(lines(cli.run("consume", topic))) == [b"1", b"2"]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_number_of_acknowledgements(cli: Typed, topic: str, acks: str) -> None:
    words = ("produce", topic, "--acks", acks, "--partition", 0)
    said = cli.run(*words, data=b"one\n").stdout.decode()
    offset = "" if acks == "0" else ", offset 0"
    assert said == f"Delivered 1 record to {topic}, partition 0{offset}.\n"
    last = None if acks == "0" else 1
    counted = cli.json(*words, data=b'{"value": "two"}\n')["partitions"]
    assert counted[0]["delivered"] == 1
    assert counted[0]["last_offset"] == last
    assert len(lines(cli.run("consume", topic))) == 2


def test_produce_makes_a_topic_only_when_told(cli: Typed) -> None:
    said = cli.run("produce", "not-there-yet", data=b"x\n", code=1).stderr.decode()
    assert "--create" in said
    cli.run("produce", "not-there-yet", "--create", data=b"x\n")
    assert lines(cli.run("consume", "not-there-yet")) == [b"x"]


def test_group_reads_on_and_can_be_moved(cli: Typed, topic: str) -> None:
    group = f"{topic}-group"
    cli.run("produce", topic, "--partition", 0, data=b"1\n2\n3\n")
    assert lines(cli.run("consume", topic, "-g", group, "-n", 2)) == [b"1", b"2"]
    (document,) = cli.json("group", "describe", group)
    assert (document["state"], document["lag"]) == ("empty", 1)
    assert lines(cli.run("consume", topic, "-g", group)) == [b"3"]
    assert lines(cli.run("consume", topic, "-g", group)) == []
    plan = cli.json("group", "reset", group, "--shift-by", -1, "--dry-run")
    assert plan["applied"] is False
    assert lines(cli.run("consume", topic, "-g", group)) == []
    moved = cli.json("group", "reset", group, "--to-offset", 99, "--topic", f"{topic}:0")
    assert moved["partitions"][0]["after"] == 3
    assert "is outside the log" in moved["partitions"][0]["note"]
    cli.run("group", "reset", group, "--to-earliest")
    assert lines(cli.run("consume", topic, "-g", group)) == [b"1", b"2", b"3"]
    assert group in [each["group"] for each in cli.json("group", "list")]
    cli.run("group", "delete", group, "--yes")
    said = cli.run("group", "describe", group, code=1).stderr.decode()
    assert f"there is no group '{group}'" in said


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + WITHIN_S
    while not what():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.1)


def test_trimmed_records_are_gone(cli: Typed, topic: str) -> None:
    at_ms = int(time.time() * 1000) - 600_000
    rows = [{"value": f"{n}", "partition": n % 3, "timestamp": at_ms + n} for n in range(9)]
    cli.run("produce", topic, "--json", data="\n".join(map(json.dumps, rows)).encode())
    found = cli.json("topic", "offsets", topic, "--at", at_ms + 5)
    assert [(each["start_offset"], each["end_offset"]) for each in found] == [(0, 3)] * 3
    assert [each["offset_at"] for each in found] == [2, 2, 1]
    planned = cli.json("topic", "trim", topic, "--before", at_ms + 5, "--dry-run")
    assert [each["after"] for each in planned["partitions"]] == [2, 2, 1]
    assert not planned["applied"]
    refused = cli.run("topic", "trim", topic, "--before", "end", code=2).stderr.decode()
    assert "add --yes" in refused
    done = cli.json("topic", "trim", topic, "--before", at_ms + 5, "--yes")
    assert done["partitions"] == planned["partitions"]
    assert sorted(lines(cli.run("consume", topic))) == [b"5", b"6", b"7", b"8"]
    cli.run("topic", "trim", topic, "-p", 0, "--before-offset", 3, "--yes")
    assert sorted(lines(cli.run("consume", topic))) == [b"5", b"7", b"8"]
    said = cli.run("topic", "trim", topic, "-p", 0, "--before-offset", 4, "-y", code=1).stderr
    assert b"allowed are 3 to 3, the end" in said
    assert cli.json("health")["state"] == "healthy"


def test_a_watched_group_is_shown_again(cli: Typed, topic: str) -> None:
    cli.run("produce", topic, data=b"one\n")
    cli.run("consume", topic, "-g", f"watched-{topic}")
    words = ("group", "describe", f"watched-{topic}", "--watch", "--every", 0.2)
    with cli.start(*words, stdout=subprocess.PIPE, text=True) as watching:
        out: Any = watching.stdout
        shown: list[str] = [out.readline() for _ in range(9)]
        watching.send_signal(signal.SIGINT)
    assert sum(line.startswith(f"watched-{topic}: empty") for line in shown) >= 2
    assert watching.returncode == 130


def test_follower_in_a_group_is_seen_and_keeps_its_place_at_ctrl_c(
    cli: Typed, topic: str, tmp_path: Path
) -> None:
    group = f"{topic}-group"
    cli.run("produce", topic, data=b"first\n")
    with (tmp_path / "out").open("wb") as out:
        follower = cli.start("consume", topic, "-g", group, "-f", stdout=out)
        try:
            wait_for(lambda: (tmp_path / "out").read_bytes() == b"first\n")
            cli.run("produce", topic, data=b"second\n")
            wait_for(lambda: (tmp_path / "out").read_bytes() == b"first\nsecond\n")
            (document,) = cli.json("group", "describe", group)
            assert (document["state"], len(document["members"])) == ("stable", 1)
            said = cli.run("group", "reset", group, "--to-latest", code=1).stderr.decode()
            assert "1 member is reading" in said
            said = cli.run("group", "delete", group, "--yes", code=1).stderr.decode()
            assert "1 member is reading" in said
        finally:
            follower.send_signal(signal.SIGINT)
            assert follower.wait(WITHIN_S) == 130
    (document,) = cli.json("group", "describe", group)
    assert (document["state"], document["lag"]) == ("empty", 0)


def test_settings_of_topics_and_brokers(cli: Typed, topic: str) -> None:
    altered = cli.json("config", "alter", "topic", topic, "retention.ms=1000")
    assert altered["settings"] == [
        {
            "name": "retention.ms",
            "value": "1000",
            "source": "topic",
            "read_only": False,
            "sensitive": False,
        }
    ]
    shown = cli.run("config", "describe", "topic", topic).stdout.decode().splitlines()
    assert shown[1].split() == ["retention.ms", "1000", "topic"]
    cli.run("config", "alter", "topic", topic, "--unset", "retention.ms")
    again = cli.json("config", "describe", "topic", topic, "retention.ms")
    assert again["settings"][0]["source"] == "default"
    said = cli.run("config", "alter", "topic", topic, "retention.sm=1", code=1).stderr.decode()
    assert "Did you mean 'retention.ms'?" in said
    said = cli.run("config", "alter", "topic", topic, "retention.ms=x", code=1).stderr.decode()
    assert "retention.ms" in said
    assert len(cli.json("config", "describe", "broker", 1, "--all")["settings"]) > 50
    said = cli.run("config", "describe", "broker", 2, code=1).stderr.decode()
    assert "there is no broker '2'; there is 1." in said
