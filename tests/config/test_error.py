from ottla.config.error import ConfigError, invalid_value


def test_the_text_names_setting_value_and_what_is_allowed() -> None:
    error = invalid_value("segment.bytes", 12, "Value must be at least 1048576")
    assert isinstance(error, ConfigError)
    assert (
        str(error)
        == "Invalid value 12 for configuration segment.bytes: Value must be at least 1048576"
    )
