"""What is forgotten when too much is kept."""

from typing import NamedTuple

import pytest

from ottla.quotas.forgetting import evict


class Use(NamedTuple):
    used_ms: int


def test_what_loses_nothing_is_forgotten_first() -> None:
    kept = {number: Use(number) for number in range(20)}
    evict(kept, 20, lambda use: use.used_ms >= 10)
    assert list(kept) == list(range(10))


@pytest.mark.parametrize("like_new", [0, 1, 2])
def test_a_tenth_is_free_however_few_lose_nothing(like_new: int) -> None:
    kept = {number: Use(-number) for number in range(20)}
    evict(kept, 20, lambda use: use.used_ms > -like_new)
    # Beside them those that have paused longest: all must not be looked at again for the next one.
    assert list(kept) == list(range(like_new, 18 + like_new))
