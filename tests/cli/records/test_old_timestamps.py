"""Which records are warned of, how often, and when the topic's settings are asked for."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ottla.cli.configs import Setting
from ottla.cli.failures import Failed
from ottla.cli.records import old_timestamps
from ottla.cli.records.jsonlines import Outgoing
from ottla.cli.records.old_timestamps import OldTimestamps

DAY_MS = 86_400_000
USUAL = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "retention.ms": str(7 * DAY_MS),
}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The topic's settings, and under `asked` how often they were read."""
    topic: dict[str, Any] = {**USUAL, "asked": 0}

    def describe(_connection: Any, kind: str, names: list[str]) -> dict[str, Any]:
        assert (kind, names) == ("topic", ["t"])
        topic["asked"] += 1
        if "fault" in topic:
            raise topic["fault"]
        return {"t": [Setting(name, value, "topic") for name, value in topic.items()]}

    monkeypatch.setattr(old_timestamps, "describe_configs", describe)
    return topic


def warned(capsys: pytest.CaptureFixture[str], *ages_days: float | None) -> str:
    """What is said of records of these ages, on one line each."""
    now_ms = int(time.time() * 1000)
    times = [None if days is None else now_ms - int(days * DAY_MS) for days in ages_days]
    records = [Outgoing(None, b"v", timestamp_ms=each) for each in times]
    left = iter(records)
    decode = OldTimestamps(None, "t").watching(lambda _line: next(left))  # type: ignore[arg-type]
    assert [decode(b"a line") for _ in records] == records
    return capsys.readouterr().err


def test_the_first_old_record_is_said_with_the_way_out(settings: Any, capsys: Any) -> None:
    said = warned(capsys, None, 6.9, 12.01, 30)
    assert "the timestamp of line 3 is 12 days 0 h old" in said
    assert "t keeps records for 7 days (retention.ms)" in said
    assert said.endswith("To keep them: ottla config alter topic t retention.ms=-1\n")
    assert said.count("Warning") == 1
    assert settings["asked"] == 1


def test_records_of_now_ask_for_nothing(settings: Any, capsys: Any) -> None:
    assert warned(capsys, None, None) == ""
    assert settings["asked"] == 0


@pytest.mark.parametrize(
    "other",
    [
        {"cleanup.policy": "compact"},
        {"message.timestamp.type": "LogAppendTime"},
        {"retention.ms": "-1"},
        {"fault": Failed("not authorized")},
    ],
)
def test_topics_that_keep_such_records(settings: Any, other: Any, capsys: Any) -> None:
    settings.update(other)
    assert warned(capsys, 400, 500) == ""
    assert settings["asked"] == 1


def test_a_topic_that_deletes_and_compacts(settings: Any, capsys: Any) -> None:
    settings["cleanup.policy"] = "compact,delete"
    assert "Warning" in warned(capsys, 400)
