"""Asks the brokers whether topics still have the records that a query has read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.pipelines.checkpoint.changes import replaced
from ottla.pipelines.checkpoint.landmarks import LANDMARKS, Known, replaced_from
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.kafka.brokers import Brokers, Records

if TYPE_CHECKING:
    from ottla.pipelines.checkpoint.document import Folder
    from ottla.pipelines.kafka.settings import KafkaSettings
    from ottla.pipelines.source.source import Source
    from ottla.pipelines.spark.jvm.execution import Execution

log: Final = logging.getLogger("ottla.pipelines")

INTERVAL_S: Final = 5.0


def replaced_records(
    files: Folder,
    sources: Iterable[Source],
    ids: Mapping[str, str],
    brokers_of: Callable[[KafkaSettings], Brokers] = Brokers,
) -> dict[str, dict[int, int]]:
    """Return from where on partitions have other records than a run on this checkpoint has seen.

    `ids`: of the topics now. Raises PipelineError.
    """
    kept = LANDMARKS.read(files) or {}
    found: dict[str, dict[int, int]] = {}
    for source in sources:
        known = kept.get(source.name)
        if known is None or known.topic_id != ids.get(source.name) or source.name in found:
            continue
        times = {partition: timestamp for partition, (_, timestamp) in known.records.items()}
        now = brokers_of(source.kafka).first_since({source.name: times}) if times else {}
        found[source.name] = replaced_from(known.records, now.get(source.name, {}))
    return found


class LogWatch:
    """Compares the logs with those of the last check, and keeps what they have now.

    `ids`: of the topics that the query reads.
    """

    def __init__(
        self,
        files: Folder,
        ids: Mapping[str, str],
        brokers_of: Callable[[KafkaSettings], Brokers],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = files
        self._ids = dict(ids)
        self._brokers_of = brokers_of
        self._clock = clock
        self._asked_at: float | None = None

    def check(self, sources: Iterable[Source], execution: Execution) -> None:
        """Raise PipelineError where records that the batches before have read were replaced.

        Brokers that do not answer, or cannot say which record is the newest, keep no batch: what
        else asks them says so.
        """
        now_s = self._clock()
        if self._asked_at is not None and now_s - self._asked_at < INTERVAL_S:
            return
        self._asked_at = now_s
        asked = tuple(sources)
        try:
            others = replaced_records(self._files, asked, self._ids, self._brokers_of)
            newest = self._newest(asked, execution)
        except PipelineError as error:
            log.debug("The newest records of the topics are not known: %s", error)
            return
        for name, first in others.items():
            of = execution.range_of(name)
            begins = {} if of is None else of[0]
            lost = {part: offset for part, offset in first.items() if offset < begins.get(part, 0)}
            if lost:
                raise PipelineError(
                    f"{replaced(name, lost)}. This batch is not written. Start again to see what "
                    "is lost, with on_lost='skip' to continue with the new records"
                )
        topics = {name: Known(self._ids[name], records) for name, records in newest.items()}
        LANDMARKS.write(self._files, topics)

    def _newest(self, sources: Iterable[Source], execution: Execution) -> Records:
        ends, found = execution.ends(), Records()
        for source in sources:
            if source.name in self._ids and source.name not in found:
                partitions = {source.name: list(ends.get(source.name, {}))}
                found |= self._brokers_of(source.kafka).newest(partitions)
        return found
