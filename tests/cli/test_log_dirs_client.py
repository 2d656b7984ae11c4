"""DescribeLogDirs of every broker, old ones too, and what becomes of errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli import log_dirs_client
from ottla.cli.cluster_client import NoAnswer
from ottla.cli.log_dirs_client import DESCRIBE_LOG_DIRS, StoredReplica, log_dirs
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import messages_of


class Brokers:
    """Brokers 1, which is new, and 2, which is old."""

    settings: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, int, Any]] = []
        self.code = ErrorCode.none
        self.silent = ""
        self.is_empty = False
        monkeypatch.setattr(
            log_dirs_client, "newest_version", lambda address, *_: 5 if address == "b1:9" else 2
        )
        monkeypatch.setattr(log_dirs_client, "ask", self.ask)

    def metadata(self) -> Any:
        return SimpleNamespace(brokers={n: SimpleNamespace(host=f"b{n}", port=9) for n in (2, 1)})

    def ask(self, address: str, request: Any, _within_s: float, _security: Any) -> Any:
        self.asked.append((address, request.__version__, request.topics))
        if address == self.silent:
            raise NoAnswer("no response from b2:9 within 10 s.")
        build = messages_of(DESCRIBE_LOG_DIRS, request.__version__)
        partition = build.DescribeLogDirsPartition(
            partition_index=3, partition_size=70, offset_lag=0
        )
        result = build.DescribeLogDirsResult(
            log_dir="/d",
            topics=(build.DescribeLogDirsTopic(name="t", partitions=(partition,)),),
            total_bytes=1000,
            usable_bytes=-1,
        )
        results = () if self.is_empty else (result,)
        return build.DescribeLogDirsResponse(error_code=self.code, results=results)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Any:
    return Brokers(monkeypatch)


def test_every_broker_is_asked_in_a_version_that_it_knows(brokers: Any) -> None:
    (new, old), why = log_dirs(brokers)
    assert brokers.asked == [("b1:9", 4, None), ("b2:9", 2, None)]
    assert why == {}
    assert (new.broker, new.path, new.error, new.size_bytes) == (1, "/d", None, 70)
    assert new.replicas == (StoredReplica("t", 3, 70, 0, False),)
    assert (new.total_bytes, new.usable_bytes) == (1000, None)
    assert (old.total_bytes, old.usable_bytes) == (None, None)


def test_only_the_chosen_brokers_and_partitions_are_asked(brokers: Any) -> None:
    log_dirs(brokers, brokers=[1], partitions={"t": [3, 4]})
    ((address, _, (topic,)),) = brokers.asked
    assert (address, topic.topic, topic.partitions) == ("b1:9", "t", (3, 4))


def test_a_broker_that_does_not_answer_is_left_out_with_the_reason(brokers: Any) -> None:
    brokers.silent = "b2:9"
    found, why = log_dirs(brokers)
    assert [each.broker for each in found] == [1]
    assert why == {2: "no response from b2:9 within 10 s"}


def test_no_permission_is_an_error(brokers: Any) -> None:
    brokers.code = ErrorCode.cluster_authorization_failed
    _, why = log_dirs(brokers, brokers=[1])
    assert why == {1: "cannot read the log folders of broker 1: cluster authorization failed"}
    # An old broker says it with an empty answer.
    brokers.code, brokers.is_empty = ErrorCode.none, True
    _, why = log_dirs(brokers, brokers=[2])
    assert "cluster authorization failed" in why[2]
