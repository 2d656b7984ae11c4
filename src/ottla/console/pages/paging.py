"""Which part of a long list a page shows: `page` of the address, at most the last one."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.console.visit import Visit

MAX_PAGE: Final = 100_000


class Paging(NamedTuple):
    """The number of the page, of how many, and which rows it has."""

    page: int
    pages: int
    rows: slice


def paging_of(visit: Visit, count: int, per_page: int) -> Paging:
    """Of so many rows. Raises BadFormError."""
    pages = max(1, -(-count // per_page))
    page = min(visit.number("page", 1, MAX_PAGE) or 1, pages)
    return Paging(page, pages, slice((page - 1) * per_page, page * per_page))
