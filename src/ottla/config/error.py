"""The exception of this room."""


class ConfigError(ValueError):
    """A setting that cannot be used.

    Its message is one line that names the setting, the given value and what is allowed, in Apache
    Kafka's words if Kafka has a message for it ("Invalid value 12 for configuration segment.bytes:
    Value must be at least 1048576"). It is printed at the start and returned with INVALID_CONFIG.
    """


def invalid_value(name: str, value: object, reason: str) -> ConfigError:
    """The error in Kafka's form, for one value of one setting."""
    return ConfigError(f"Invalid value {value} for configuration {name}: {reason}")
