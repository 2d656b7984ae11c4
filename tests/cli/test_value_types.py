"""What the types of values take, and what they say of a wrong one."""

from __future__ import annotations

from typing import Any

import click
import pytest

from ottla.cli.failures import UsageFailed
from ottla.cli.value_types import Age, Number, Seconds, Size, Time, WholeNumber
from ottla.messaging.positions import PositionError


def convert(kind: click.ParamType[Any], text: str) -> Any:
    return kind.convert(text, click.Option(["--o", "--option"]), None)


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("+2", 2), ("-3", -3), (" 7", 7), (str(2**63 - 1), 2**63 - 1)]
)
def test_whole_numbers(text: str, number: int) -> None:
    assert convert(WholeNumber(), text) == number


def test_numbers_are_floats_at_once() -> None:
    found = convert(Number(), "2")
    assert (found, type(found)) == (2.0, float)


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (WholeNumber(), "x", "must be a whole number, not 'x'."),
        (WholeNumber(), "1.5", "must be a whole number, not '1.5'."),
        (WholeNumber(), "1_0", "must be a whole number, not '1_0'."),
        (WholeNumber(), "9" * 5000, f"must be a whole number, not '{'9' * 40}…'."),
        # What no field of a request holds.
        (WholeNumber(1), str(2**63), f"must be {2**63 - 1} or less, not {2**63}."),
        (WholeNumber(), str(-(2**63)), f"must be -{2**63 - 1} or more, not -{2**63}."),
        # Times that a sleep, or librdkafka, does not take.
        (Seconds(1), "inf", "must be 2000000 or less, not inf."),
        (Seconds(1), "1e400", "must be 2000000 or less, not 1e400."),
        (Number(), "soon", "must be a number, not 'soon'."),
        (WholeNumber(1), "0", "must be 1 or more, not 0."),
        (WholeNumber(most=65535), "70000", "must be 65535 or less, not 70000."),
        (Number(0.2), "nan", "must be 0.2 or more, not nan."),
    ],
)
def test_the_value_and_what_is_allowed(kind: click.ParamType[Any], given: str, words: str) -> None:
    with pytest.raises(click.BadParameter) as found:
        convert(kind, given)
    assert found.value.message == words


def test_sizes_and_times_name_the_option_if_wrong() -> None:
    assert convert(Size(), "10kB") == 10_000
    assert convert(Time(), "1700000000000") == 1700000000000
    with pytest.raises(UsageFailed, match="--option: 'x' is not a size"):
        convert(Size(), "x")
    with pytest.raises(PositionError, match="--option: 'x' is not a time"):
        convert(Time(), "x")


def test_ages() -> None:
    assert (convert(Age(), "15m"), convert(Age(), "2s")) == (900_000, 2_000)
    with pytest.raises(PositionError, match="--option: 'soon' is not an age"):
        convert(Age(), "soon")
    with pytest.raises(PositionError, match="--option: '36501d' is too long"):
        convert(Age(), "36501d")
