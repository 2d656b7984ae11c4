"""A broker is asked before Spark waits for it."""

import socket
from collections.abc import Callable

import pytest

from ottla.pipelines import brokers
from ottla.pipelines.errors import PipelineError


def test_a_topic_that_is_there_passes(bootstrap: str, new_topic: Callable[..., str]) -> None:
    assert brokers.check_topic(bootstrap, new_topic()) is None


def test_a_misspelt_topic_names_the_nearest(bootstrap: str, new_topic: Callable[..., str]) -> None:
    name = new_topic()
    with pytest.raises(PipelineError, match=f"did you mean '{name}'"):
        brokers.check_topic(bootstrap, name.replace("topic", "topik"))


def test_a_topic_like_none_says_how_to_make_it(bootstrap: str) -> None:
    with pytest.raises(PipelineError, match="type: ottla topic create 0000"):
        brokers.check_topic(bootstrap, "0000")


def test_a_broker_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "_TIMEOUT_S", 1)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(PipelineError, match=f"No broker answers at 127.0.0.1:{port}"):
            brokers.check_topic(f"127.0.0.1:{port}", "flights")
