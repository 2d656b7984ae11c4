"""The error for a broken invariant."""


class Violation(Exception):  # noqa: N818 - a finding, not an error of the simulation
    """An invariant does not hold; the message says which."""
