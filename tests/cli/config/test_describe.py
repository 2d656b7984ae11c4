"""`ottla config describe`: which settings are shown."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.client.fake_cluster import FakeCluster

from ottla.cli.app import carry_out
from ottla.client.admin.configs import DESCRIBE_CONFIGS
from ottla.protocol.messages import messages_of


def with_settings(*settings: tuple[str, str | None, int]) -> Any:
    """The topic t; each with its source (KIP-226)."""

    def answer(address: str, request: Any) -> Any:
        build = messages_of(DESCRIBE_CONFIGS, request.__version__)
        found = tuple(
            build.DescribeConfigsResourceResult(
                name=name, value=value, config_source=source, is_sensitive=value is None
            )
            for name, value, source in settings
        )
        result = build.DescribeConfigsResult(
            error_message=None, resource_type=2, resource_name="t", configs=found
        )
        return build.DescribeConfigsResponse(results=(result,))

    return SimpleNamespace(client=FakeCluster({DESCRIBE_CONFIGS: [answer]}).client())


@pytest.fixture
def cluster() -> Any:
    secret = ("ssl.key.password", None, 5)
    return with_settings(("retention.ms", "5", 1), ("segment.ms", "5", 5), secret)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], ["retention.ms"]),
        (["--all"], ["retention.ms", "segment.ms", "ssl.key.password"]),
        (["segment.ms"], ["segment.ms"]),
        (["segment.ms", "--all"], ["segment.ms"]),
    ],
)
def test_named_settings_or_those_that_differ(
    words: list[str], shown: list[str], cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carry_out(["config", "describe", "topic", "t", *words, "--json"], cluster) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["name"]) == ("topic", "t")
    assert [each["name"] for each in document["settings"]] == shown


def test_a_password_is_hidden(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["config", "describe", "topic", "t", "--all"], cluster) == 0
    heading, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert heading == ["setting", "value", "from"]
    assert rows[0] == ["retention.ms", "5", "topic"]
    assert rows[2][1] == "(hidden)"


def test_a_typing_error_is_corrected(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["config", "describe", "topic", "t", "retention.m"], cluster) == 1
    assert "Did you mean 'retention.ms'?" in capsys.readouterr().err


def test_all_defaults_are_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = with_settings(("segment.ms", "5", 5))
    assert carry_out(["config", "describe", "topic", "t"], cluster) == 0
    assert "topic t has only default settings" in capsys.readouterr().err
