"""The one exception of this room."""


class ConfigError(ValueError):
    """A setting that cannot be used.

    Its text is one line that names the setting, what was given and what is allowed, in the
    words of Apache Kafka where Kafka has them ("Invalid value 12 for configuration segment.bytes:
    Value must be at least 1048576"): it is printed at the start and sent as INVALID_CONFIG.
    """


def invalid_value(name: str, value: object, reason: str) -> ConfigError:
    """The error in Kafka's form for one value of one setting."""
    return ConfigError(f"Invalid value {value} for configuration {name}: {reason}")
