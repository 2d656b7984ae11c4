import pytest

from ottla.config import validator
from ottla.config.error import ConfigError
from ottla.config.validator import Validator


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (validator.at_least(1), 1),
        (validator.between(1, 17), 17),
        (validator.between(0, 1), 0.5),
        (validator.one_of("a", "b"), "b"),
        (validator.one_of("PLAIN", ignore_case=True), "plain"),
        (validator.list_of("compact", "delete"), ()),
        (validator.list_of("compact", "delete"), ("delete", "compact")),
        (validator.list_of(), ("anything",)),
        (validator.gzip_level(), -1),
        (validator.gzip_level(), 9),
        (validator.throttled_replicas(), ("*",)),
        (validator.throttled_replicas(), ("0:101", "1:102")),
        (validator.only(False, "no"), False),
    ],
)
def test_accepts(check: Validator, value: object) -> None:
    check.check("name", value)  # type: ignore[arg-type]
    assert check.allowed


@pytest.mark.parametrize(
    ("check", "value", "reason"),
    [
        (validator.at_least(1), 0, "Value must be at least 1"),
        (validator.between(0, 1), 2.0, "Value must be no more than 1"),
        (validator.between(0, 1), float("nan"), "Value must be at least 0"),
        (validator.one_of("a", "b"), "A", "String must be one of: a, b"),
        (validator.list_of("compact", "delete"), ("keep",), "one of: compact, delete"),
        (validator.list_of("a", "b"), ("a", ""), "must not be empty"),
        (validator.list_of("a", empty_allowed=False), (), "must not be empty"),
        (validator.gzip_level(), 0, "Value must be between 1 and 9 or equal to -1"),
        (validator.throttled_replicas(), ("0-101",), "[partitionId]:[brokerId]"),
        (validator.only(False, "not here"), True, "not here"),
    ],
)
def test_rejects(check: Validator, value: object, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check.check("a.setting", value)  # type: ignore[arg-type]
    assert "a.setting" in str(caught.value)
    assert reason in str(caught.value)
