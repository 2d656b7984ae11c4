"""The hint for a setting whose value has a unit."""

import pytest

from ottla.cli.failures import Failed
from ottla.client.admin.setting_units import unit_hint, unit_hint_for


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("retention.ms", "7d", "retention.ms is a number of milliseconds; 7 days is 604800000"),
        ("retention.ms", "1 week", "retention.ms is a number of milliseconds; 1 week is 604800000"),
        ("segment.ms", "1.5h", "segment.ms is a number of milliseconds; 1.5 hours is 5400000"),
        ("flush.ms", "500ms", "flush.ms is a number of milliseconds; 500 milliseconds is 500"),
        ("log.retention.hours", "7d", "log.retention.hours is a number of hours; 7 days is 168"),
        ("log.retention.hours", "90min", "log.retention.hours is a number of hours"),
        ("segment.bytes", "1GiB", "segment.bytes is a number of bytes; 1 GiB is 1073741824"),
        ("segment.bytes", "512m", "segment.bytes is a number of bytes; 512 MiB is 536870912"),
        ("max.message.bytes", "2MB", "max.message.bytes is a number of bytes; 2 MB is 2000000"),
        ("segment.bytes", "100kb", "segment.bytes is a number of bytes; 100 kB is 100000"),
        ("segment.bytes", "7d", None),
        ("retention.ms", "604800000", None),
        ("retention.ms", "seven", None),
        ("cleanup.policy", "7d", None),
    ],
)
def test_the_unit_of_a_setting_is_its_names(name: str, value: str, hint: str | None) -> None:
    assert unit_hint(name, value) == hint


def test_a_failure_gets_the_hint_unless_it_has_one() -> None:
    settings = {"cleanup.policy": "compact", "retention.ms": "7d"}
    for own, hint in ((None, unit_hint("retention.ms", "7d")), ("its own", "its own")):
        with pytest.raises(Failed) as failed, unit_hint_for(settings):
            raise Failed("invalid", own)
        assert failed.value.hint == hint
