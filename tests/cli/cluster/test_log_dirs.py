"""What `ottla cluster log-dirs` prints."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from tests.client.answers import stored
from tests.client.fake_cluster import FakeCluster
from tests.client.stored_folders import FOLDERS

from ottla.cli.app import carry_out
from ottla.client.admin.log_dirs import DESCRIBE_LOG_DIRS


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster({DESCRIBE_LOG_DIRS: [stored(FOLDERS)]})


def describe(cluster: FakeCluster, *words: str) -> int:
    cluster.leaders = {("big", 0): 1}
    return carry_out(["cluster", "log-dirs", *words], SimpleNamespace(client=cluster.client()))


def test_folders_and_topics_with_their_sizes(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert describe(cluster) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "broker  replicas    size    disk      free  folder  state",
        "     1         2  2.5 MB  1.0 TB  400.0 GB  /a",
        "     2         0     0 B       -         -  /b      kafka storage error",
        "     2         1  2.4 MB       -         -  /c",
        "",
        "topic  replicas    size",
        "big           2  4.9 MB",
        "small         1    10 B",
    ]


def test_replicas_of_topics(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert describe(cluster, "big", "--broker", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["big", "0", "2", "2.4", "MB", "7", "copied", "to", "/c"]
    assert describe(cluster, "big", "--broker", "2", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document[0]) == [
        *("broker", "log_dir", "error", "size_bytes", "total_bytes", "usable_bytes", "replicas")
    ]
    assert document[1]["replicas"] == [
        {
            "topic": "big",
            "partition": 0,
            "size_bytes": 2_400_000,
            "offset_lag": 7,
            "is_future": True,
        }
    ]


def test_a_broker_that_does_not_answer_fails_after_the_rest(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.silent.add("b2:9092")
    assert describe(cluster) == 1
    printed = capsys.readouterr()
    assert "/a" in printed.out
    assert printed.err == "broker 2: no response from b2:9092.\n"


def test_an_unknown_broker_is_refused(
    cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert describe(cluster, "--broker", "9") == 1
    assert "there is no live broker '9'" in capsys.readouterr().err
