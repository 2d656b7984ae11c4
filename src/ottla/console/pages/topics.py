"""The list of topics: size, partitions, replicas, groups and the worst lag among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from ottla.client.admin.lags import GroupLag
from ottla.client.admin.topic_sizes import TopicSize, topic_sizes
from ottla.client.admin.topics import is_internal, replication_factor_of
from ottla.client.metadata import Topic
from ottla.console.pages.charts import sampler_of, topic_rate
from ottla.console.pages.paging import paging_of
from ottla.console.shared_answers import FRESH_S, known_lags, shared_metadata
from ottla.console.visit import Visit

PER_PAGE: Final = 100
MAX_SIZED_PARTITIONS: Final = 20_000
"""Of all topics; of more, only those of the page have a size."""
SORTS: Final = ("name", "partitions", "offsets", "size", "lag")


class ListedTopic(NamedTuple):
    """A row. None: not known."""

    name: str
    is_internal: bool
    partitions: int
    replication_factor: int
    without_leader: int
    under_replicated: int
    offsets: int | None
    size_bytes: int | None
    worst: GroupLag | None
    groups: int


def topics(visit: Visit) -> Response:
    """The page at `/topics`."""
    part = visit.text("q")
    with_internal = visit.text("internal") == "1"
    sort = visit.text("sort") if visit.text("sort") in SORTS else "name"
    known = shared_metadata(visit).topics
    found = {
        name: topic
        for name, topic in sorted(known.items())
        if part.lower() in name.lower() and (with_internal or not is_internal(name))
    }
    behind, why_no_lags = known_lags(visit)
    groups = behind.by_topic()
    is_sortable = sum(len(each.partitions) for each in found.values()) <= MAX_SIZED_PARTITIONS
    if not is_sortable and sort in ("offsets", "size"):
        sort = "name"
    paging = paging_of(visit, len(found), PER_PAGE)
    if sort in ("name", "partitions", "lag"):
        rows = sorted(listed(found, {}, groups), key=sort_key(sort))[paging.rows]
        sized, silent = kept_sizes(visit, {row.name: found[row.name] for row in rows})
        rows = [with_size(row, sized) for row in rows]
    else:
        sized, silent = kept_sizes(visit, found)
        rows = sorted(listed(found, sized, groups), key=sort_key(sort))[paging.rows]
    return visit.page(
        "topics.html",
        rows=rows,
        rates={row.name: topic_rate(visit, row.name) for row in rows}
        if sampler_of(visit)
        else None,
        count=len(found),
        all=len(known),
        part=part,
        internal=with_internal,
        sort=sort,
        is_sortable=is_sortable,
        page=paging.page,
        pages=paging.pages,
        silent=silent,
        why_no_lags=why_no_lags,
    )


def kept_sizes(
    visit: Visit, chosen: Mapping[str, Topic]
) -> tuple[dict[str, TopicSize], dict[int, str]]:
    """Sizes, and the brokers that did not say with the reason."""
    name = f"sizes {hash(tuple(chosen))}"
    return visit.access.kept(name, FRESH_S, lambda: topic_sizes(visit.client, chosen))


def listed(
    found: Mapping[str, Topic],
    sizes: Mapping[str, TopicSize],
    groups: Mapping[str, Sequence[GroupLag]],
) -> list[ListedTopic]:
    """A row for each topic."""
    rows = []
    for name, topic in found.items():
        partitions, readers = topic.partitions.values(), groups.get(name, ())
        size = sizes.get(name, TopicSize(None, None))
        rows.append(
            ListedTopic(
                name,
                topic.is_internal or is_internal(name),
                len(topic.partitions),
                replication_factor_of(topic),
                sum(each.leader < 0 for each in partitions),
                sum(len(each.in_sync) < len(each.replicas) for each in partitions),
                size.offsets,
                size.size_bytes,
                readers[0] if readers else None,
                len(readers),
            )
        )
    return rows


def with_size(row: ListedTopic, sizes: Mapping[str, TopicSize]) -> ListedTopic:
    return row._replace(offsets=sizes[row.name].offsets, size_bytes=sizes[row.name].size_bytes)


def sort_key(sort: str) -> Callable[[ListedTopic], Any]:
    """Numbers from the largest, those not known last."""
    numbers: dict[str, Callable[[ListedTopic], int | None]] = {
        "partitions": lambda row: row.partitions,
        "offsets": lambda row: row.offsets,
        "size": lambda row: row.size_bytes,
        "lag": lambda row: row.worst.lag if row.worst else None,
    }
    number = numbers.get(sort)
    if number is None:
        return lambda row: row.name
    return lambda row: ((found := number(row)) is None, -(found or 0), row.name)
