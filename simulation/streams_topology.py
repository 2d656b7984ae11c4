"""The application that the members of a simulated streams group run (KIP-1071).

    0    reads the topic of all runs and a source of its own, writes to the repartition topic
    1    reads the repartition topic, and keeps its state in changelogs

Its versions differ in their changelogs, as an application does that got one more store. Pure.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from simulation.cluster import STREAMS_INTERNAL, STREAMS_SOURCE, TOPIC

READS: Final = "0"
"""The subtopology without state."""
KEEPS: Final = "1"
REPARTITION, CHANGELOG, OTHER_CHANGELOG = STREAMS_INTERNAL
TOPIC_OF: Final = {READS: TOPIC, KEEPS: REPARTITION}
"""Where each subtopology commits."""


class Application:
    """One version after the other."""

    def __init__(self, seed: int) -> None:
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
