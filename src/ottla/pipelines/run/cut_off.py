"""A batch that was cut off before its topic got more partitions, and `availableNow`.

Spark first notes where all partitions end, and then refuses each batch that lacks one of them
(KafkaMicroBatchStream.verifyEndOffsetForTriggerAvailableNow): the batch that was planned before
would be refused at each start. So it is run alone first, by a trigger that notes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.pipelines.checkpoint.checkpoint import Checkpoint
    from ottla.pipelines.kafka.brokers import TopicState

ALONE = {"once": True}
"""The trigger that runs the batch which is planned, and ends."""


class CutOffFirst:
    """The triggers of a query's starts: that of a batch alone, where need be, before its own.

    `look_up` asks the brokers for the state of the query's topics.
    """

    def __init__(
        self,
        trigger: Mapping[str, Any] | None,
        checkpoint: Checkpoint,
        look_up: Callable[[], Mapping[str, TopicState]],
    ) -> None:
        self._own = dict(trigger or {})
        self._checkpoint = checkpoint
        self._look_up = look_up
        self.is_alone = False

    def next(self) -> dict[str, Any]:
        """Return the trigger of the next start. Raises PipelineError where no broker answers."""
        self.is_alone = False
        if "availableNow" in self._own and self._checkpoint.begun_ms() is not None:
            ends = self._checkpoint.begins(is_delivered=True)
            self.is_alone = lacks_partitions(ends, self._look_up())
        return ALONE if self.is_alone else self._own


def lacks_partitions(
    ends: Mapping[str, Mapping[int, int]], topics: Mapping[str, TopicState]
) -> bool:
    """Tell whether a batch that ends there lacks partitions that its topics have. Pure."""
    return any(set(state.latest) - set(ends.get(name, {})) for name, state in topics.items())
