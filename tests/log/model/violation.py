"""What a check raises."""


class Violation(Exception):  # noqa: N818 - a finding, not an error of the model
    """The log is not what the model says. One line says what."""


def ensure(holds: bool, what: str) -> None:
    """Raise Violation with `what` unless it holds."""
    if not holds:
        raise Violation(what)
