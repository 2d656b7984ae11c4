"""Numbers of things in words."""

import pytest

from ottla.wording.plural import plural


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 partitions"), (1, "1 partition"), (10_000, "10,000 partitions")],
)
def test_one_or_more(number: int, said: str) -> None:
    assert plural(number, "partition") == said
