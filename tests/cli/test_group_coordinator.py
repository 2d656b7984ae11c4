"""The broker's reason as a sentence, if there is one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec

import pytest

from ottla.cli import cluster_client
from ottla.cli.failures import Failed
from ottla.cli.group_coordinator import why_no_coordinator
from ottla.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("code", "message", "reason"),
    [
        (ErrorCode.none, None, None),
        (ErrorCode.coordinator_not_available, "Too few brokers.", "Too few brokers."),
        (ErrorCode.coordinator_not_available, "Too few brokers", "Too few brokers."),
        (ErrorCode.coordinator_load_in_progress, None, "coordinator load in progress."),
        (ErrorCode.group_authorization_failed, "", "group authorization failed."),
    ],
)
def test_the_reason(
    monkeypatch: pytest.MonkeyPatch, code: ErrorCode, message: str | None, reason: str | None
) -> None:
    answer = SimpleNamespace(error_code=code, error_message=message)
    ask: Any = create_autospec(cluster_client.ask, return_value=answer)
    monkeypatch.setattr(cluster_client, "ask", ask)
    assert why_no_coordinator("b:1", "g") == reason
    bootstrap, request, _ = ask.call_args.args
    assert (bootstrap, request.key, request.key_type) == ("b:1", "g", 0)


def test_no_broker_responds(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = create_autospec(cluster_client.ask, side_effect=Failed("no response"))
    monkeypatch.setattr(cluster_client, "ask", ask)
    assert why_no_coordinator("b:1", "g") is None
