"""What each commit of a pipeline says about itself: Delta keeps it as the commit's `userMetadata`.

    {"ottla.pipeline": 1, "query": "<name>", "id": "<query id>", "batch": n, "cluster": "<id>",
     "topics": {"<name>": {"id": "<topic id>", "offsets": {"<partition>": <next offset>},
                           "rejects_from": {"<partition>": <offset>}}},
     "after": ["<query id>"]}

`rejects_from` is there for a topic whose rows may be rejected: the rejected rows before it are
written, those from it up to `offsets` may not be. `after` is there in a query that continues where
others ended, with another checkpoint: they must not go on. `DESCRIBE HISTORY` shows all of it, and
`starting="table"` continues from it. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ottla.pipelines.checkpoint.identity import Offsets, read_offsets

MARK = "ottla.pipeline"


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """The query and the batch of a commit, and where the batch ends in each topic."""

    query: str
    query_id: str
    batch: int
    cluster: str
    topic_ids: dict[str, str]
    offsets: Offsets
    rejects_from: Offsets = field(default_factory=dict)
    after: tuple[str, ...] = ()

    def text(self) -> str:
        """Return it as it is kept, in one line."""
        document: dict[str, Any] = {
            MARK: 1,
            "query": self.query,
            "id": self.query_id,
            "batch": self.batch,
            "cluster": self.cluster,
            "topics": {
                name: {"id": self.topic_ids.get(name, ""), "offsets": offsets}
                | ({"rejects_from": self.rejects_from[name]} if name in self.rejects_from else {})
                for name, offsets in self.offsets.items()
            },
        }
        if self.after:
            document["after"] = self.after
        return json.dumps(document, separators=(",", ":"))


def read_metadata(text: str) -> CommitMetadata | None:
    """Return what a commit says, None when it is not of a pipeline."""
    try:
        document = json.loads(text)
        if document[MARK] != 1:
            return None
        topics = document["topics"]
        return CommitMetadata(
            document["query"],
            document["id"],
            document["batch"],
            document["cluster"],
            {name: topic["id"] for name, topic in topics.items()},
            read_offsets({name: topic["offsets"] for name, topic in topics.items()}),
            read_offsets(
                {
                    name: topic["rejects_from"]
                    for name, topic in topics.items()
                    if "rejects_from" in topic
                }
            ),
            tuple(str(query_id) for query_id in document.get("after", ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def latest_of_query(commits: Iterable[str], query_id: str) -> CommitMetadata | None:
    """Return the newest commit of a query, None when none is known; give the newest first."""
    return next(_of_query(commits, query_id), None)


def latest_two_of_query(
    commits: Iterable[str], query_id: str
) -> tuple[CommitMetadata | None, CommitMetadata | None]:
    """Return the newest commit of a query and the one before it, as far as they are known."""
    own = _of_query(commits, query_id)
    return next(own, None), next(own, None)


def _of_query(commits: Iterable[str], query_id: str) -> Iterator[CommitMetadata]:
    """Yield a query's commits; those before one are read when it is asked for."""
    known = (read_metadata(text) for text in commits)
    return (one for one in known if one is not None and one.query_id == query_id)


def continued_by(commits: Iterable[str], query_id: str) -> str:
    """Return the query that continues where this one ended, empty where there is none."""
    found = (read_metadata(text) for text in commits)
    return next((one.query_id for one in found if one and query_id in one.after), "")


def is_of_query(text: str, query_id: str) -> bool:
    """Tell whether a commit is one of this query."""
    metadata = read_metadata(text)
    return metadata is not None and metadata.query_id == query_id


def latest_of_topics(commits: Iterable[str], topics: Iterable[str]) -> dict[str, CommitMetadata]:
    """Return for each topic the newest commit that names it; give the newest commits first.

    A commit that a query made when another one had continued it does not count: it was under way
    then, the query is refused after it, and the other one goes on.
    """
    found: dict[str, CommitMetadata] = {}
    unsure = set(topics)
    for text in commits:
        if not unsure:
            break
        metadata = read_metadata(text)
        if metadata is None:
            continue
        for name in unsure & set(metadata.offsets):
            known = found.get(name)
            if known is None or known.query_id in metadata.after:
                found[name] = metadata
        # Only a query with an earlier batch can be continued.
        unsure -= {
            name
            for name, one in found.items()
            if one.batch == 0 or (one is not metadata and one.query_id == metadata.query_id)
        }
    return found


def side_by_side(commits: Iterable[str], topic: str, last: CommitMetadata) -> CommitMetadata | None:
    """Return the newest commit of a query that wrote a topic between the commits of another one.

    `last`: the newest commit of that other query; those that it continues do not count. None where
    each query wrote after the one before, or both end alike. Give the newest commits first.
    """
    newer: dict[str, CommitMetadata] = {}
    for text in commits:
        one = read_metadata(text)
        if one is None or one.topic_ids.get(topic) != last.topic_ids[topic]:
            continue
        if one.query_id != last.query_id:
            if one.query_id not in last.after and last.query_id not in one.after:
                newer.setdefault(one.query_id, one)
            continue
        for other in newer.values():
            if other.offsets[topic] != last.offsets[topic]:
                return other
        if one.batch == 0:
            break
    return None
