"""What `ottla cluster log-dirs` prints."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import typer
from tests.client.answers import stored
from tests.client.fake_cluster import FakeCluster

from ottla.cli import cluster_log_dirs
from ottla.cli.cluster_log_dirs import describe_log_dirs, leader_sizes
from ottla.cli.failures import Failed
from ottla.client.admin.log_dirs import DESCRIBE_LOG_DIRS, LogDir, StoredReplica

FOLDERS = [
    LogDir(
        1,
        "/a",
        None,
        10**12,
        4 * 10**11,
        (StoredReplica("small", 0, 10, 0, False), StoredReplica("big", 0, 2_500_000, 0, False)),
    ),
    LogDir(2, "/b", "kafka storage error", None, None, ()),
    LogDir(2, "/c", None, None, None, (StoredReplica("big", 0, 2_400_000, 7, True),)),
]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    made = FakeCluster({DESCRIBE_LOG_DIRS: [stored(FOLDERS)]})
    topics = {"big": SimpleNamespace(partitions={0: None})}
    connection = SimpleNamespace(
        metadata=lambda: SimpleNamespace(brokers={1: None, 2: None}),
        existing_topics=lambda names: {name: topics[name] for name in names},
        client=made.client(),
    )
    monkeypatch.setattr(cluster_log_dirs, "connect", lambda *_: connection)
    return made


@pytest.mark.usefixtures("cluster")
def test_folders_and_topics_with_their_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    describe_log_dirs()
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


@pytest.mark.usefixtures("cluster")
def test_replicas_of_topics(capsys: pytest.CaptureFixture[str]) -> None:
    describe_log_dirs(["big"], [2])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["big", "0", "2", "2.4", "MB", "7", "copied", "to", "/c"]
    describe_log_dirs(["big"], [2], as_json=True)
    document = json.loads(capsys.readouterr().out)
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
    with pytest.raises(typer.Exit):
        describe_log_dirs()
    printed = capsys.readouterr()
    assert "/a" in printed.out
    assert printed.err == "broker 2: no response from b2:9092.\n"


@pytest.mark.usefixtures("cluster")
def test_an_unknown_broker_is_refused() -> None:
    with pytest.raises(Failed, match="there is no live broker '9'"):
        describe_log_dirs(broker=[9])


def test_a_topic_is_as_large_as_its_leaders_store() -> None:
    assert leader_sizes(FOLDERS, {("big", 0): 1, ("small", 0): 2}) == {"big": 2_500_000}
