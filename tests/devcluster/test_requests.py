"""Requests to a running cluster, as files."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from ottla.devcluster import requests
from ottla.devcluster.errors import DevClusterError
from ottla.devcluster.lock import held
from ottla.devcluster.requests import Request, Requests, ask


def answered_with(data: Path, document: dict[str, Any], request: Request) -> Any:
    """Ask while a thread answers as `cluster start` does."""
    with held(data):
        requests = Requests(data)
        seen: list[Request] = []

        def serve() -> None:
            while not seen:
                for request_id, found in requests.waiting().items():
                    seen.append(found)
                    requests.answer(request_id, document)

        server = threading.Thread(target=serve)
        server.start()
        try:
            return ask(data, request)
        finally:
            server.join()
            assert seen == [request]
            assert requests.waiting() == {}
            assert list((data / "requests").iterdir()) == []


def test_an_answer_comes_back_and_no_file_is_left(tmp_path: Path) -> None:
    found = answered_with(tmp_path, {"broker": 2, "state": "killed"}, Request("kill", 2))
    assert found == {"broker": 2, "state": "killed"}


def test_a_refusal_is_a_failure_with_its_hint(tmp_path: Path) -> None:
    refusal = {"failed": "broker 2 is not running.", "hint": "To start it: ..."}
    with pytest.raises(DevClusterError, match="broker 2 is not running") as caught:
        answered_with(tmp_path, refusal, Request("stop", 2))
    assert caught.value.hint == "To start it: ..."


def test_without_a_running_cluster_nothing_is_asked(tmp_path: Path) -> None:
    with pytest.raises(DevClusterError, match="no `ottla cluster start` runs on"):
        ask(tmp_path / "nowhere", Request("kill", 1))
    assert not (tmp_path / "nowhere").exists()


def test_a_cluster_that_ends_or_stays_silent_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = held(tmp_path)
    Requests(tmp_path)
    monkeypatch.setattr(requests, "ANSWER_WITHIN_S", 0.0)
    with pytest.raises(DevClusterError, match="did not answer within"):
        ask(tmp_path, Request("kill", 1))
    looks = iter([True, False])
    monkeypatch.setattr(requests, "is_held", lambda data: next(looks))
    with pytest.raises(DevClusterError, match="ended before it answered"):
        ask(tmp_path, Request("kill", 1))
    lock.close()


def test_a_start_forgets_what_an_earlier_one_was_asked(tmp_path: Path) -> None:
    Requests(tmp_path)
    (tmp_path / "requests" / "a.request").write_text('{"command": "kill", "broker": 1}')
    assert Requests(tmp_path).waiting() == {}
