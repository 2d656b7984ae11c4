"""Settings of a schema registry."""

from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.registry.settings import read_registry


def test_a_url_is_enough_and_retries_have_a_limit() -> None:
    found = read_registry("http://localhost:8081").for_client()

    assert found == {
        "url": "http://localhost:8081",
        "max.retries": 3,
        "retries.wait.ms": 1_000,
        "retries.max.wait.ms": 4_000,
    }


def test_settings_win_and_numbers_may_be_text() -> None:
    found = read_registry({"url": "https://a", "max.retries": "1", "timeout": 2.5}).for_client()

    assert (found["max.retries"], found["timeout"]) == (1, 2.5)


def test_nothing_secret_is_shown() -> None:
    found = read_registry(
        {"url": "https://me:s3cret@registry.example.com/api", "basic.auth.user.info": "me:s3cret"}
    )

    assert found.shown == "https://registry.example.com/api"
    assert "s3cret" not in repr(found)
    assert "basic.auth.user.info" in repr(found)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("localhost:8081", "http:// or https://"),
        ({"basic.auth.user.info": "me:s3cret"}, "takes a URL"),
        (8081, "takes a URL"),
        ({"url": "http://a", "timeout": "s3cret"}, "timeout, which must be a number"),
        ({"url": "http://a", "rules": {"s3cret": 1}}, "'rules', which is no setting"),
    ],
)
def test_wrong_settings_are_refused_without_their_values(given: Any, words: str) -> None:
    with pytest.raises(PipelineError, match=words) as refused:
        read_registry(given)
    assert "s3cret" not in str(refused.value)
