"""Which message of a Protobuf schema is read, and what asks the registry; no Spark is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.source.registry_schema import _message


def messages(*roots: str, others: tuple[str, ...] = ()) -> Any:
    return SimpleNamespace(
        schema=SimpleNamespace(shown="The schema 7"),
        by_name=dict.fromkeys((*roots, *others)),
        roots=lambda: list(roots),
        main=lambda: roots[0] if len(roots) == 1 else None,
    )


def wanted(message: str = "") -> Any:
    return SimpleNamespace(message=message, subject="flights-value")


@pytest.mark.parametrize(
    ("found", "message", "read"),
    [
        (messages("Flight"), "", "Flight"),
        (messages("Flight", others=("Place",)), "", "Flight"),
        (messages("Flight", others=("Place",)), "Place", "Place"),
        (messages("Flight", "Plane"), "Plane", "Plane"),
    ],
)
def test_the_message_that_is_read(found: Any, message: str, read: str) -> None:
    assert _message(found, wanted(message)) == read


def test_a_message_that_the_schema_does_not_have() -> None:
    with pytest.raises(PipelineError) as refused:
        _message(messages("Flight", others=("Place",)), wanted("flight"))
    assert str(refused.value) == "The schema 7 has no message flight: it has Flight, Place"


def test_several_messages_and_no_word_which() -> None:
    with pytest.raises(PipelineError) as refused:
        _message(messages("Flight", "Plane"), wanted())
    assert str(refused.value) == (
        "The schema 7 has the messages Flight, Plane: name the one to read, "
        "'registry:flights-value#Flight'"
    )
