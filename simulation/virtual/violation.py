"""What a simulated run must never show."""


class Violation(Exception):  # noqa: N818 - a finding, not an error of the simulation
    """Something that must always hold does not; the text says what."""
