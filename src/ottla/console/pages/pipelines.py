"""Pipelines on Spark, as their commits say it: state, batches, lag, what was rejected, where the
rows are. It is what `ottla pipeline status` shows, of all pipelines that the cluster knows.
"""

from __future__ import annotations

import time
from typing import Final

from starlette.responses import Response

from ottla.client.admin.committed_offsets import all_commits, commits_of
from ottla.client.admin.group_states import ReadPartition, group_state
from ottla.client.admin.groups import described_groups
from ottla.client.admin.lags import lags_of
from ottla.client.admin.pipelines import ListedPipeline, pipelines_of
from ottla.client.client import Client
from ottla.client.errors import RefusedError
from ottla.client.topic_partition import TopicPartition
from ottla.console.errors import NotFoundError
from ottla.console.pages.paging import paging_of
from ottla.console.shared_answers import FRESH_S
from ottla.console.visit import Visit
from ottla.journey.pipeline_state import COMPANION, SILENT, UNKNOWN, pipeline_state
from ottla.messaging.unread_times import UnreadTimes, ages_ms
from ottla.wording.errors import unknown

PER_PAGE: Final = 100
MAX_ROWS: Final = 1000
MAX_AGED: Final = 200
"""Partitions, the most behind, whose first unread record is read for the lag in time."""
BAD: Final = frozenset({"failed", SILENT})
TONES: Final = {
    **dict.fromkeys(BAD, "bad"),
    **dict.fromkeys(("retrying", UNKNOWN), "warn"),
    **dict.fromkeys(("starting", "running"), "good"),
    **dict.fromkeys(("stopped", "finished"), "none"),
}


def pipelines(visit: Visit) -> Response:
    """The page at `/pipelines`; those that have failed or are silent first."""
    found = visit.access.kept("pipelines", FRESH_S, lambda: asked(visit.client))
    part, now_ms = visit.text("q"), int(time.time() * 1000)
    rows = [
        each
        for each in found
        if part.lower() in each.state.query.lower() or part.lower() in each.state.group.lower()
    ]
    rows.sort(key=lambda each: each.state.state_at(now_ms) not in BAD)
    paging = paging_of(visit, len(rows), PER_PAGE)
    return visit.page(
        "pipelines.html",
        rows=rows[paging.rows],
        count=len(rows),
        all=len(found),
        part=part,
        page=paging.page,
        pages=paging.pages,
        now_ms=now_ms,
        tones=TONES,
    )


def asked(client: Client) -> list[ListedPipeline]:
    """All that the cluster knows."""
    commits = all_commits(client)
    return pipelines_of(commits, lags_of(client, commits))


def pipeline(visit: Visit) -> Response:
    """The page at `/pipeline?name=GROUP`."""
    name, client = visit.query.get("name", ""), visit.client
    commits = commits_of(client, name)
    state = pipeline_state(
        name, [each.metadata for each in commits.values()], companion_texts(client, name)
    )
    if state is None:
        names = [each.state.group for each in asked(client)]
        hint = "All pipelines are listed under Pipelines."
        raise unknown(NotFoundError, "pipeline", name, names, hint)
    found = described_groups(client, [name])
    rows = group_state(client, found[name]).partitions if name in found else []
    rows = sorted(rows, key=lambda each: (-(each.lag or 0), each.topic, each.partition))
    ages = visit.access.kept(f"ages {name}", FRESH_S, lambda: asked_ages(visit, rows[:MAX_AGED]))
    return visit.page(
        "pipeline.html",
        state=state,
        run=state.run,
        rows=rows[:MAX_ROWS],
        more=len(rows) - MAX_ROWS,
        lag=sum(each.lag or 0 for each in rows) if rows else None,
        ages=ages,
        behind_ms=max(ages.values(), default=None),
        now_ms=int(time.time() * 1000),
        tones=TONES,
    )


def companion_texts(client: Client, name: str) -> list[str]:
    """What a run that has no query yet says; nothing where this client may not see it."""
    try:
        return [each.metadata for each in commits_of(client, name + COMPANION).values()]
    except RefusedError:
        return []


def asked_ages(visit: Visit, rows: list[ReadPartition]) -> dict[TopicPartition, int]:
    """How old the first record is that is not read, of each partition where that is known."""
    known = [each for each in rows if each.committed_offset is not None and each.lag is not None]
    at = {each.topic_partition: each.committed_offset or 0 for each in known}
    times = UnreadTimes(visit.access.settings)
    try:
        lags = {each.topic_partition: each.lag or 0 for each in known}
        return ages_ms(times, at, lags, int(time.time() * 1000))
    finally:
        times.close()
