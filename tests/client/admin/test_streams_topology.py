from types import SimpleNamespace
from typing import Any

from ottla.client.admin.streams_topology import active_partitions, topology_of
from ottla.client.topic_partition import TopicPartition


def subtopology(name: str, *sources: str, own: str = "", state: str = "") -> Any:
    def topics(names: str) -> Any:
        return [SimpleNamespace(name=each) for each in names.split()]

    return SimpleNamespace(
        subtopology_id=name,
        source_topics=sources,
        repartition_source_topics=topics(own),
        state_changelog_topics=topics(state),
    )


def described(*subtopologies: Any) -> Any:
    return SimpleNamespace(topology=SimpleNamespace(subtopologies=subtopologies))


def test_topics_by_what_they_are_for() -> None:
    found = topology_of(described(subtopology("0", "b", "a"), subtopology("1", own="r", state="c")))
    assert (found.sources, found.repartitions, found.changelogs) == (("a", "b"), ("r",), ("c",))
    assert found.read_topics == ("a", "b", "r")


def test_a_group_without_a_topology() -> None:
    assert topology_of(SimpleNamespace(topology=None)).read_topics == ()


def test_a_task_reads_its_partition_of_topics_that_have_it() -> None:
    topology = topology_of(described(subtopology("0", "large", "small")))
    tasks = [SimpleNamespace(subtopology_id="0", partitions=(0, 2))]
    member = SimpleNamespace(assignment=SimpleNamespace(active_tasks=tasks))
    existing = {TopicPartition("large", n) for n in range(3)} | {TopicPartition("small", 0)}
    assert active_partitions(member, topology, existing) == (
        TopicPartition("large", 0),
        TopicPartition("large", 2),
        TopicPartition("small", 0),
    )
