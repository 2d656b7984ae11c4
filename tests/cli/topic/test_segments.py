"""`ottla topic segments`: which there are, and when retention removes them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster, closing

from ottla.cli.app import carry_out
from ottla.client.admin.segments import Segment
from ottla.protocol.versions import SEGMENTS

OLD = Segment(3, 10, 5000, 1_700_000_000_000, 1_700_000_100_000, None, is_active=False)
ACTIVE = Segment(10, 12, 70, 1_700_000_000_000, None, None, is_active=True)


def cluster_of(answer: Any) -> Any:
    fake = FakeCluster({SEGMENTS: [answer]})
    fake.leaders = {("t", 0): 1}
    return SimpleNamespace(client=fake.client())


def answering(count: int) -> Any:
    listed = [each._asdict() for each in (OLD, ACTIVE)]
    document = {"segments": 1, "broker": 1, "count": count, "listed": listed}
    return lambda *_: json.dumps(document).encode()


def test_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["topic", "segments", "t"], cluster_of(answering(2))) == 0
    printed = capsys.readouterr()
    _, old, active = printed.out.splitlines()
    assert "2023-11-14" in old
    assert active.endswith("active")
    assert printed.err == ""
    assert carry_out(["topic", "segments", "t", "--json"], cluster_of(answering(2))) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0] == {"partition": 0, **OLD._asdict()}


def test_those_that_are_not_listed_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["topic", "segments", "t"], cluster_of(answering(1500))) == 0
    assert "1498 more segments of t-0" in capsys.readouterr().err


def test_apache_kafka_does_not_list_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["topic", "segments", "t"], cluster_of(closing)) != 0
    assert "lists no segments" in capsys.readouterr().err
