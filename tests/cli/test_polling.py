"""Looking until it is done, or the time is over."""

from __future__ import annotations

from ottla.cli.polling import poll_until


def test_it_looks_until_it_is_done() -> None:
    found = iter([3, 2, 1, 0])
    last = poll_until(lambda: next(found), lambda left: left == 1, within_s=60, pause_s=0)
    assert (last, list(found)) == (1, [0])


def test_it_looks_once_at_least_and_returns_what_it_found_last() -> None:
    looks: list[int] = []

    def look() -> int:
        looks.append(1)
        return len(looks)

    assert poll_until(look, lambda _: False, within_s=-1, pause_s=0) == 1
