"""A moment as the document has it."""

from ottla.journey.moment import moment
from ottla.journey.offset_history import When


def test_exact_bounded_and_unknown() -> None:
    assert moment(When(5, 5)) == {"since_ms": 5, "until_ms": 5, "exact": True}
    assert moment(When(5, 9)) == {"since_ms": 5, "until_ms": 9, "exact": False}
    assert moment(When(None, None)) == {"since_ms": None, "until_ms": None, "exact": False}
