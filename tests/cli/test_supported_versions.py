"""What a broker supports, and the line for a request that it does not know."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.cli import supported_versions
from ottla.cli.cluster_client import NoAnswer
from ottla.cli.failures import Failed
from ottla.cli.plain_security import NONE
from ottla.cli.supported_versions import API_VERSIONS, ask_supported, knows, newest_version
from ottla.protocol.messages import messages_of

DESCRIBE_LOG_DIRS = 35


@pytest.fixture
def old_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Knows DescribeLogDirs 1 and 2, and closes the connection for all else."""

    def ask(_address: str, request: Any, *, security: Any) -> Any:
        if request.__api_key__ == API_VERSIONS:
            build = messages_of(API_VERSIONS, 0)
            known = build.ApiVersion(api_key=DESCRIBE_LOG_DIRS, min_version=1, max_version=2)
            return build.ApiVersionsResponse(api_keys=(known,))
        if request.__version__ <= 2:
            return "answer"
        raise NoAnswer("closed.")

    monkeypatch.setattr(supported_versions, "ask", ask)


def log_dirs(version: int) -> Any:
    return messages_of(DESCRIBE_LOG_DIRS, version, "request").DescribeLogDirsRequest(topics=None)


@pytest.mark.usefixtures("old_broker")
def test_versions_of_a_broker() -> None:
    assert newest_version("b:1", DESCRIBE_LOG_DIRS, NONE) == 2
    assert newest_version("b:1", 99, NONE) == -1
    assert knows("b:1", DESCRIBE_LOG_DIRS, 2, NONE)
    assert not knows("b:1", DESCRIBE_LOG_DIRS, 4, NONE)


@pytest.mark.usefixtures("old_broker")
def test_a_request_that_the_broker_does_not_know() -> None:
    assert ask_supported("b:1", log_dirs(2), NONE, "3.3") == "answer"
    with pytest.raises(Failed, match="does not support DescribeLogDirs in version 4") as raised:
        ask_supported("b:1", log_dirs(4), NONE, "3.3")
    assert raised.value.hint == "Apache Kafka 3.3 and later do."
    with pytest.raises(NoAnswer):
        ask_supported("b:1", log_dirs(4), NONE, None)
