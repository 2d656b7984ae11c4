"""An unclean election says what it cost: in the brokers' logs, in the metrics, in the journey."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.system.cluster_load import QUICK, WAIT_S, create, produce, wait_for

from ottla.testing import Cluster
from ottla.testing.ports import free_ports

TOPIC = "unclean"
SETTINGS = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}


def metrics(port: int) -> dict[str, float]:
    """Those without labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=WAIT_S) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {each.name: each.value for family in families for each in family.samples}


def journey(cluster: Cluster, offset: int, *options: str) -> str:
    """What `ottla journey` prints of a message."""
    words = [TOPIC, "0", str(offset), "--bootstrap", cluster.bootstrap, *options]
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "journey", *words],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        env={**os.environ, "COLUMNS": "150"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_unclean_election_says_which_offsets_it_dropped(tmp_path: Path) -> None:
    """Two followers die, the leader takes ten more records and dies; a follower comes back."""
    ports = dict(zip((1, 2, 3), free_ports(3), strict=True))
    with Cluster(3, QUICK, data=tmp_path / "cluster") as cluster:
        for number, broker in cluster.brokers.items():
            # From its next start on.
            broker.options += ["-c", f"ottla.metrics.listener=127.0.0.1:{ports[number]}"]
        create(cluster, TOPIC, config=SETTINGS)
        assert produce(cluster, TOPIC, 5) == ["NO_ERROR"] * 5
        last = cluster.leader(TOPIC)
        first, second = (each for each in cluster.brokers if each != last)
        cluster.kill(first)
        cluster.kill(second)
        wait_for(
            "the leader to be alone",
            lambda: (cluster.state.partition(TOPIC, 0) or {})["isr"] == [last],
        )
        assert produce(cluster, TOPIC, 10) == ["NO_ERROR"] * 10
        cluster.kill(last)
        cluster.start(first)
        assert cluster.wait_leader_other_than(last, TOPIC) == first
        assert produce(cluster, TOPIC, 3) == ["NO_ERROR"] * 3
        cluster.start(second)
        cluster.start(last)
        cluster.wait_in_sync()
        _logs_tell(cluster, first)
        _metrics_tell(ports, first, last)
        _journey_tells(cluster, first, last)


def _logs_tell(cluster: Cluster, first: int) -> None:
    said = "".join(broker.said() for broker in cluster.brokers.values())
    assert f"unclean election: {TOPIC}-0 is led by {first}" in said
    assert f"{TOPIC}-0: truncated offsets 5 to 14, which leader {first} does not have" in said


def _metrics_tell(ports: dict[int, int], first: int, last: int) -> None:
    dropped = {number: metrics(port) for number, port in ports.items()}
    counts = {number: each["ottla_truncated_records_total"] for number, each in dropped.items()}
    assert counts == {**dict.fromkeys(ports, 0.0), last: 10.0}
    # Of what was committed the one that was killed knows a part only.
    committed = dropped[last]["ottla_truncated_committed_records_total"]
    assert 0 <= committed <= 10
    assert dropped[first]["ottla_truncated_committed_records_total"] == 0


def _journey_tells(cluster: Cluster, first: int, last: int) -> None:
    """Of a record that was there before, and of the one that has a dropped one's offset."""
    for offset in (4, 5):
        document: Any = json.loads(journey(cluster, offset, "--json"))
        elections = document["replicated"]["elections"]
        told = [each for each in elections if each["unclean"]]
        assert [each["leader"] for each in told] == [first], elections
        ((cut,),) = (each["dropped"] for each in told)
        assert (cut["broker"], cut["from_offset"], cut["to_offset"]) == (last, 5, 14)
        printed = " ".join(journey(cluster, offset).split())
        assert "unclean: it was not in sync" in printed
        assert f"dropped offsets 5 to 14 of broker {last}, at " in printed
