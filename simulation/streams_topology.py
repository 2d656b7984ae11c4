"""The application that the members of a simulated streams group run (KIP-1071).

    0    reads the topic of all runs and a source of its own, writes to the repartition topic
    1    reads the repartition topic, and keeps its state in changelogs

Its versions differ in their changelogs, as an application does that got one more store. Pure.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from ottla.groups.streams.description import MAX_DESCRIPTION_NAMES, NodeKind
from simulation.cluster import STREAMS_INTERNAL, STREAMS_SOURCE, TOPIC

READS: Final = "0"
"""The subtopology without state."""
KEEPS: Final = "1"
REPARTITION, CHANGELOG, OTHER_CHANGELOG = STREAMS_INTERNAL
TOPIC_OF: Final = {READS: TOPIC, KEEPS: REPARTITION}
"""Where each subtopology commits."""
TOO_LARGE_SHARE: Final = 0.15
"""Of the descriptions of versions."""


class Application:
    """One version after the other."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.repartitions = Random(f"{seed} repartitions").choice((0, 2, 2))
        """Partitions of the repartition topic; 0: as many as the sources have."""

    def changelogs(self, version: int) -> tuple[str, ...]:
        """Of subtopology 1; changelogs of former versions stay."""
        return (CHANGELOG, OTHER_CHANGELOG) if version % 2 else (CHANGELOG,)

    def topology(self, build: Any, version: int) -> Any:
        """As a heartbeat has it; the version is its epoch."""

        def internal(name: str, partitions: int) -> Any:
            return build.TopicInfo(
                name=name, partitions=partitions, replication_factor=0, topic_configs=()
            )

        return build.Topology(
            epoch=version,
            subtopologies=(
                build.Subtopology(
                    subtopology_id=READS,
                    source_topics=(TOPIC, STREAMS_SOURCE),
                    source_topic_regex=(),
                    state_changelog_topics=(),
                    repartition_sink_topics=(REPARTITION,),
                    repartition_source_topics=(),
                    copartition_groups=(),
                ),
                build.Subtopology(
                    subtopology_id=KEEPS,
                    source_topics=(),
                    source_topic_regex=(),
                    state_changelog_topics=tuple(
                        internal(name, 0) for name in self.changelogs(version)
                    ),
                    repartition_sink_topics=(),
                    repartition_source_topics=(internal(REPARTITION, self.repartitions),),
                    copartition_groups=(),
                ),
            ),
        )

    def is_describable(self, version: int) -> bool:
        """Whether the description of its topology is not too large to be kept (KIP-1331)."""
        return Random(f"{self._seed} description {version}").random() >= TOO_LARGE_SHARE

    def description(self, build: Any, version: int) -> Any:
        """Of the version's topology, which no other version has."""

        def node(name: str, kind: NodeKind, **given: Any) -> Any:
            fields = {"source_topics": (), "stores": (), "successors": ()} | given
            return build.TopologyDescriptionNode(
                name=f"{name}-{version}", node_type=kind.value, **fields
            )

        def subtopology(name: str, *nodes: Any) -> Any:
            return build.TopologyDescriptionSubtopology(subtopology_id=name, nodes=nodes)

        read: tuple[str, ...] = (TOPIC, STREAMS_SOURCE)
        if not self.is_describable(version):
            read = tuple(f"t{number}" for number in range(MAX_DESCRIPTION_NAMES))
        sums = node("sums", NodeKind.PROCESSOR, stores=self.changelogs(version))
        return build.TopologyDescription(
            subtopologies=(
                subtopology(
                    READS,
                    node("read", NodeKind.SOURCE, source_topics=read, successors=("write",)),
                    node("write", NodeKind.SINK, sink_topic=REPARTITION),
                ),
                subtopology(
                    KEEPS,
                    node("values", NodeKind.SOURCE, source_topics=(REPARTITION,)),
                    sums,
                ),
            ),
            global_stores=(
                build.TopologyDescriptionGlobalStore(
                    source=node("all", NodeKind.SOURCE, source_topics=(TOPIC,)),
                    processor=node("keep", NodeKind.PROCESSOR, stores=("all",)),
                ),
            ),
        )
