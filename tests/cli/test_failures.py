"""Failures with their hints, and names that were nearly right."""

import pytest

from ottla.cli.failures import ClusterOptions, Failed, UsageFailed, as_failed, unknown
from ottla.client.errors import AddressError, SecurityError, SettingsError, UnreachableError
from ottla.devcluster.errors import OptionError
from ottla.log.inspect.errors import InspectError


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


def test_every_reported_error_is_a_failure_of_the_command() -> None:
    wrong = as_failed(OptionError("no\x1b.", "Try."))
    assert (wrong.exit_code, wrong.message, wrong.hint) == (2, "no\\x1b.", "Try.")
    refused = as_failed(InspectError("it is no folder."))
    assert (refused.exit_code, refused.message) == (1, "it is no folder.")
    own = UsageFailed("mine")
    assert as_failed(own) is own


def test_a_failure_is_told_with_the_options_that_named_the_cluster() -> None:
    own = ClusterOptions("--source", "--source-config")
    address = as_failed(AddressError("bootstrap must be HOST:PORT.", "h:1"), own)
    assert address.message == "--source must be HOST:PORT."
    assert address.hint == "For example: --source h:1"
    assert as_failed(SettingsError("no."), own).message == "--source-config: no."
    to_set = as_failed(SecurityError("refused.", to_set="sasl.username"), own)
    assert to_set.hint == "Set sasl.username (with --source-config, or in a profile)."
    assert as_failed(SecurityError("refused."), own).hint == (
        "Check the security settings (--source-config)."
    )
    assert "with --source HOST:PORT" in str(as_failed(UnreachableError("away."), own).hint)
    assert "with --bootstrap HOST:PORT" in str(as_failed(UnreachableError("away.")).hint)
