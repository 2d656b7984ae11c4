"""Pydantic's findings in our words."""

from typing import Annotated

import pytest
from pydantic import AfterValidator, TypeAdapter, ValidationError
from pydantic.types import conint

from ottla.cli.wrong_value import what_is_wrong


def caught(kind: object, given: str) -> Exception:
    """typer's error with pydantic's as its cause."""
    error = Exception()
    with pytest.raises(ValidationError) as found:
        TypeAdapter(kind).validate_python(given)
    error.__cause__ = found.value
    return error


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (int, "x", "must be a whole number, not 'x'"),
        (int, "1.5", "must be a whole number, not '1.5'"),
        (int, "9" * 5000, f"must be a whole number, not '{'9' * 40}…'"),
        (float, "soon", "must be a number, not 'soon'"),
        (conint(ge=1), "0", "must be 1 or more, not 0"),
        (conint(le=65535), "70000", "must be 65535 or less, not 70000"),
    ],
)
def test_the_value_and_what_is_allowed(kind: object, given: str, words: str) -> None:
    assert what_is_wrong(caught(kind, given)) == words


def test_a_choice_that_does_not_exist_keeps_only_typers_own_words() -> None:
    def refuse(given: str) -> str:
        raise ValueError(f"{given!r} is not one of 'gzip', 'zstd'.")

    kind = Annotated[str, AfterValidator(refuse)]
    assert what_is_wrong(caught(kind, "zip")) == "'zip' is not one of 'gzip', 'zstd'"


def test_other_errors_keep_their_words() -> None:
    assert what_is_wrong(Exception("no such option")) is None
    assert what_is_wrong(caught(bytes, 3)) is None  # type: ignore[arg-type]
