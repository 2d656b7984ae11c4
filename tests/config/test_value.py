import pytest

from ottla.config.error import ConfigError
from ottla.config.value import DOUBLE_MAX, ConfigType, parse_value, value_text


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.INT, " -12 ", -12),
        (ConfigType.INT, "+7", 7),
        (ConfigType.INT, "2147483647", 2**31 - 1),
        (ConfigType.SHORT, "-32768", -(2**15)),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "0.5", 0.5),
        (ConfigType.LIST, " compact , delete ", ("compact", "delete")),
        (ConfigType.LIST, "b,a,b", ("b", "a")),
        (ConfigType.LIST, "  ", ()),
        (ConfigType.STRING, " producer ", "producer"),
        (ConfigType.PASSWORD, " with blanks ", " with blanks "),
    ],
)
def test_parses_like_kafka(kind: ConfigType, text: str, value: object) -> None:
    assert parse_value("name", kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (ConfigType.BOOLEAN, "yes", "Expected value to be either true or false"),
        (ConfigType.INT, "2147483648", "Not a number of type INT"),
        (ConfigType.INT, "1.5", "Not a number of type INT"),
        (ConfigType.INT, "1_000", "Not a number of type INT"),
        (ConfigType.INT, "٣", "Not a number of type INT"),
        (ConfigType.INT, "", "Not a number of type INT"),
        (ConfigType.SHORT, "40000", "Not a number of type SHORT"),
        (ConfigType.LONG, "9" * 5000, "Not a number of type LONG"),
        (ConfigType.DOUBLE, "half", "Not a number of type DOUBLE"),
    ],
)
def test_refuses_with_setting_value_and_reason(kind: ConfigType, text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_value("a.setting", kind, text)
    message = str(caught.value)
    assert message.endswith(f"for configuration a.setting: {reason}")
    assert "\n" not in message
    assert len(message) < 200


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (5, "5"),
        (0.5, "0.5"),
        (DOUBLE_MAX, "1.7976931348623157E308"),
        (("a", "b"), "a,b"),
        ((), ""),
        ("word", "word"),
    ],
)
def test_formats_like_kafka(value: object, text: str | None) -> None:
    assert value_text(value) == text  # type: ignore[arg-type]
