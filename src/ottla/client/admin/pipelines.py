"""The pipelines of a cluster: the groups whose commits say that a pipeline made them."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.admin.committed_offsets import AllCommits
from ottla.client.admin.lags import GroupLag, Lags
from ottla.journey.pipeline_state import COMPANION, PipelineState, group_of, pipeline_state


class ListedPipeline(NamedTuple):
    """`lag` is None if the pipeline has committed nothing yet, or it is not known."""

    state: PipelineState
    topics: list[GroupLag]

    @property
    def lag(self) -> int | None:
        return sum(each.lag for each in self.topics) if self.topics else None


def pipelines_of(commits: AllCommits, known: Lags) -> list[ListedPipeline]:
    """Of all commits of a cluster, by name."""
    texts = {
        name: [each.metadata for each in group.values()] for name, group in commits.by_group.items()
    }
    names = {found for name, each in texts.items() if (found := group_of(name, each)) is not None}
    behind = known.by_group()
    rows = []
    for name in names:
        state = pipeline_state(name, texts.get(name, ()), texts.get(name + COMPANION, ()))
        if state is not None:
            rows.append(ListedPipeline(state, behind.get(name, [])))
    return sorted(rows, key=lambda row: (row.state.query, row.state.group))
