"""The first page: what is wrong, in words with what to do, and the brokers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from starlette.responses import Response

from ottla.client.admin.hanging_transactions import HangingTransaction
from ottla.client.admin.health import (
    Problem,
    certificate_days_left,
    hanging_transactions,
    problems,
)
from ottla.client.admin.lags import left_behind
from ottla.client.admin.log_dirs import LogDir, log_dirs
from ottla.client.admin.losses import DAY_MS, records_at_risk
from ottla.client.client import Client
from ottla.client.errors import ClientError, RefusedError
from ottla.console.history import is_growing
from ottla.console.pages.charts import sampler_of
from ottla.console.sampler import LAG
from ottla.console.shared_answers import (
    shared_cluster,
    shared_elections,
    shared_groups,
    shared_lags,
)
from ottla.console.visit import Visit

MAX_WATCHED: Final = 100
"""Groups, the most behind, of which it is said that their lag grows."""
MAX_SHOWN: Final = 10
"""Elections; the rest is folded."""
MAX_LINKS: Final = 12
"""Partitions that are named with a problem."""
HANGING_FRESH_S: Final = 30.0
"""To look for hanging transactions, each leader is asked about each of its partitions."""


class ShownProblem(NamedTuple):
    """A problem with links to where it is; `more`: how many are not named."""

    what: str
    advice: str
    is_broken: bool
    links: list[tuple[str, str]]
    more: int


class Risks(NamedTuple):
    """What takes long to find out."""

    hanging: list[HangingTransaction] | None
    days_left: dict[int, int]
    folders: list[LogDir]
    losing: dict[str, int]
    """How many unread records of each group retention removes within a day."""


def overview(visit: Visit) -> Response:
    """The page at `/`."""
    access = visit.access
    cluster = shared_cluster(visit)
    # Each leader is asked about each partition, each broker for its certificate: the first page
    # does not wait for it, and has it when it asks again.
    risks = access.kept_soon(
        "risks",
        HANGING_FRESH_S,
        lambda client: Risks(
            hanging_transactions(client),
            certificate_days_left(client, cluster),
            log_dirs(client, partitions={})[0],
            losing(client),
        ),
    )
    hanging, days_left, folders, at_risk = risks or Risks(None, {}, [], {})
    groups, idle = known_groups(visit)
    elections = shared_elections(visit, cluster)
    found = [shown(each) for each in problems(cluster, hanging, days_left, folders)]
    return visit.page(
        "overview.html",
        cluster=cluster,
        problems=found,
        broken=any(each.is_broken for each in found),
        groups=groups,
        is_looking=risks is None,
        losing=[*at_risk.items()][:MAX_LINKS],
        more_losing=max(0, len(at_risk) - MAX_LINKS),
        growing=growing(visit, {name for name, _ in idle}) if groups else [],
        idle=idle[:MAX_LINKS],
        more_idle=max(0, len(idle) - MAX_LINKS),
        elections=None if isinstance(elections, RefusedError) else elections,
        refused=elections if isinstance(elections, RefusedError) else None,
        most_elections=MAX_SHOWN,
    )


def losing(client: Client) -> dict[str, int]:
    """Nothing where the brokers do not say."""
    try:
        return records_at_risk(client, DAY_MS, int(time.time() * 1000))
    except ClientError:
        return {}


def known_groups(visit: Visit) -> tuple[int | None, list[tuple[str, int]]]:
    """How many there are (None: the cluster does not say), and those without members that are
    behind, with their lag.
    """
    try:
        groups = shared_groups(visit)
        return len(groups), left_behind(groups, shared_lags(visit))
    except RefusedError:
        return None, []


def growing(visit: Visit, idle: Collection[str]) -> list[tuple[str, int]]:
    """Of the groups that are most behind, those whose lag grows, with it; nothing without a
    history. Groups without members are said to be `idle`.
    """
    sampler = sampler_of(visit)
    if sampler is None:
        return []
    found: Counter[str] = Counter()
    for each in shared_lags(visit).lags:
        if each.group not in idle:
            found[each.group] += each.lag
    return [
        (name, lag)
        for name, lag in found.most_common(MAX_WATCHED)
        if is_growing(sampler.history.read(LAG, name)[1])
    ][:MAX_LINKS]


def shown(problem: Problem) -> ShownProblem:
    links = list(links_of(problem))
    return ShownProblem(
        problem.what,
        problem.advice,
        problem.is_broken,
        links,
        len(problem.partitions) - len(links),
    )


def links_of(problem: Problem) -> Iterator[tuple[str, str]]:
    """Names and addresses of the first partitions."""
    for each in problem.partitions[:MAX_LINKS]:
        yield f"{each.topic}-{each.partition}", f"/topics/{each.topic}/partitions"
