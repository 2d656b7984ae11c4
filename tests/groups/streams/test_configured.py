"""A topology beside the topics of the cluster. Kafka's InternalTopicManagerTest and its parts'."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.groups.streams.world import COUNTS, subtopology

from ottla.groups.consumer.topics import Topic, Topics
from ottla.groups.streams.configured import configure
from ottla.groups.streams.endpoints import endpoint_partitions
from ottla.groups.streams.member import Endpoint, Member
from ottla.groups.streams.status import StatusCode
from ottla.groups.streams.tasks import HeldTasks
from ottla.groups.streams.topology import CopartitionGroup, Subtopology, Topology, check_topology
from ottla.protocol.errors import ApiError, ErrorCode


def topics(**counts: int) -> Topics:
    return Topics(1, {name: Topic(UUID(int=7), count) for name, count in counts.items()})


def counts_of(topology: Topology, **counts: int) -> dict[str, int]:
    found = configure(topology, topics(**counts))
    return {topic.name: topic.partitions for topic in found.missing_topics}


def joined(*groups: CopartitionGroup, sources: str = "t,u", repartitions: str = "") -> Topology:
    each = subtopology("1", sources, repartitions=repartitions)
    feeds = subtopology("0", "t", sinks=",".join(r.name for r in each.repartition_source_topics))
    return Topology(0, (feeds, each._replace(copartition_groups=groups)))


BOTH = CopartitionGroup((0, 1), (), ())


def test_a_repartition_topic_has_as_many_as_what_feeds_it() -> None:
    assert counts_of(COUNTS, t=6) == {"r": 6, "c": 6}
    fixed = Topology(
        0,
        (
            subtopology("0", "t", sinks="r"),
            subtopology("1", "", changelogs="c", repartitions="r:4"),
        ),
    )
    assert counts_of(fixed, t=6) == {"r": 4, "c": 4}


def test_chains_in_any_order() -> None:
    chain = Topology(
        0,
        (
            subtopology("0", "", repartitions="r2", changelogs="c"),
            subtopology("1", "", repartitions="r1", sinks="r2"),
            subtopology("2", "t,u", sinks="r1"),
        ),
    )
    assert counts_of(chain, t=2, u=5) == {"r1": 5, "r2": 5, "c": 5}


def test_a_long_chain_in_the_wrong_order() -> None:
    links = 3_000
    chain = [
        subtopology(f"{links - n:04}", "", repartitions=f"r{n}", sinks=f"r{n + 1}")
        for n in range(links)
    ]
    topology = Topology(0, (*reversed(chain), subtopology("9999", "t", sinks="r0")))
    assert topology.subtopologies == tuple(sorted(topology.subtopologies))
    found = counts_of(topology, t=7)
    assert set(found.values()) == {7}
    assert len(found) == links


def test_ready() -> None:
    found = configure(COUNTS, topics(t=2, r=2, c=2))
    assert found.is_ready
    assert found.subtopologies is not None
    assert {name: each.task_count for name, each in found.subtopologies.items()} == {"0": 2, "1": 2}


def test_sources_that_must_be_alike() -> None:
    found = configure(joined(BOTH), topics(t=2, u=3))
    assert found.problem is not None
    assert found.problem.code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert "[{t=2, u=3}]" in found.problem.detail
    assert configure(joined(BOTH), topics(t=3, u=3)).is_ready


@pytest.mark.parametrize(
    ("repartitions", "expected"),
    [("r", {"r": 5}), ("r:5", {"r": 5}), ("r:4", None)],
)
def test_repartition_topics_follow_sources(
    repartitions: str, expected: dict[str, int] | None
) -> None:
    topology = joined(CopartitionGroup((0,), (), (0,)), sources="u", repartitions=repartitions)
    found = configure(topology, topics(t=2, u=5))
    if expected is not None:
        assert {topic.name: topic.partitions for topic in found.missing_topics} == expected
        return
    assert found.problem is not None
    assert (
        "[4] of repartition topic [r] doesn't match number of partitions [5]"
        in found.problem.detail
    )


def test_repartition_topics_among_themselves() -> None:
    group = CopartitionGroup((), (), (0, 1))
    assert counts_of(joined(group, sources="", repartitions="r,s"), t=3) == {"r": 3, "s": 3}
    assert counts_of(joined(group, sources="", repartitions="r:7,s"), t=3) == {"r": 7, "s": 7}
    differ = configure(joined(group, sources="", repartitions="r:7,s:8"), topics(t=3))
    assert differ.problem is not None
    assert "[{r=7, s=8}]" in differ.problem.detail


def test_many_missing_topics_are_summed_up() -> None:
    found = configure(Topology(0, (subtopology("0", "a,b,c,d,e"),)), topics())
    assert found.problem is not None
    assert found.problem.detail == "Source topics a, b, c and 2 additional topics are missing."


LOOP = Topology(
    0,
    (
        subtopology("0", "", repartitions="r", sinks="s"),
        subtopology("1", "", repartitions="s", sinks="r"),
    ),
)


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (LOOP, "There may be loops"),
        (Topology(0, (subtopology("0", "t", repartitions="r"),)), "never used as a sink"),
        (Topology(0, (subtopology("0", ""),)), "No source topics found for subtopology 0"),
    ],
)
def test_a_topology_without_a_solution(topology: Topology, message: str) -> None:
    with pytest.raises(ApiError, match=message) as refused:
        configure(topology, topics(t=1))
    assert refused.value.code is ErrorCode.streams_invalid_topology


def of(each: Subtopology) -> Topology:
    return Topology(0, (each,))


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (of(subtopology("0", "t", changelogs="c:3")), "Changelog topic c must have an undefined"),
        (of(subtopology("0", "t", repartitions="r:-1")), "has -1 partitions"),
        (Topology(0, (subtopology("0", "t"),) * 2), "the same id"),
        (Topology(-1, ()), "Topology epoch is -1"),
        (
            of(
                subtopology("0", "t")._replace(copartition_groups=(CopartitionGroup((1,), (), ()),))
            ),
            "does not have",
        ),
        (
            of(
                subtopology("0", "t")._replace(
                    copartition_groups=(CopartitionGroup((), (), (-1,)),)
                )
            ),
            "does not have",
        ),
    ],
)
def test_a_topology_that_cannot_be(topology: Topology, message: str) -> None:
    with pytest.raises(ApiError, match=message) as refused:
        check_topology(topology)
    assert refused.value.code is ErrorCode.streams_invalid_topology


class Vanishing(dict[str, Topic]):
    """Each topic is deleted by another thread once it was looked for."""

    def __contains__(self, name: object) -> bool:
        return self.pop(str(name), None) is not None

    def get(self, name: str, default: Any = None) -> Any:
        return self.pop(name, default)


def test_a_topic_may_be_deleted_while_a_thread_looks() -> None:
    there = topics(t=6, r=6, c=6)
    found = configure(COUNTS, Topics(1, Vanishing(there.by_name)))
    assert found == configure(COUNTS, there)
    reads = endpoint_partitions(
        [Member("m", endpoint=Endpoint("h", 1), assigned=HeldTasks({"0": {1: 1}}))],
        found,
        Topics(1, Vanishing(there.by_name)),
    )
    assert reads is not None
    assert reads[0].active == (("t", (1,)),)
