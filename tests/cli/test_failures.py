"""Names that were nearly right."""

import pytest

from ottla.cli.failures import Failed, UsageFailed, nearest, unknown


def test_nearest_name() -> None:
    assert nearest("flihgts", ["weather", "flights", "planes"]) == "flights"
    assert nearest("Flights", ["flights", "Flight"]) == "flights"
    assert nearest("zzz", ["flights"]) is None
    assert nearest("x", []) is None


def test_an_unknown_name_suggests_the_nearest() -> None:
    failure = unknown("topic", "flihgts", ["flights"], "look")
    assert failure.message == "there is no topic 'flihgts'. Did you mean 'flights'?"
    assert unknown("topic", "q", ["flights"], "look").message == "there is no topic 'q'."


def test_failure_is_a_line_and_a_hint_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Failed("it broke.", "Mend it.").print("ottla x")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "ottla x: it broke.\n  Mend it.\n")
    assert (Failed("").exit_code, UsageFailed("").exit_code) == (1, 2)
