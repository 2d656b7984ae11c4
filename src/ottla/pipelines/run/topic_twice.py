"""A topic that a query reads by several calls of `topic`: Spark reads it once for each of them.

Each of these reads has offsets of its own, and they may differ: their batches are not planned in
the same moment. Commits and starts know one offset for each partition of a topic. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.source.source import Source

_WAY_OUT = "Read it by one call of topic(), and select from that frame twice"


def check_rejected(sources: Iterable[Source]) -> None:
    """Refuse reads of one topic of which some reject rows: those of the one would be looked for
    among the offsets of the other. Raises PipelineError.
    """
    found = list(sources)
    for name in _several(found):
        if len({one.metric for one in found if one.name == name}) > 1 and any(
            one.can_reject for one in found if one.name == name
        ):
            raise PipelineError(
                f"The frame reads topic {name!r} by several calls of topic(), whose rejected rows "
                f"cannot be told apart. {_WAY_OUT}; or write rejects='keep'"
            )


def check_start(sources: Iterable[Source], how: str) -> None:
    """Refuse to continue several reads of one topic at one offset for each partition.

    `how`: the argument that asks for it. Raises PipelineError.
    """
    if names := _several(sources):
        raise PipelineError(
            f"{how} cannot be used here: the frame reads topic {names[0]!r} by several calls of "
            "topic(), each with offsets of its own, and only one offset of each partition is "
            f"known: records would be read twice. {_WAY_OUT}, with a new checkpoint and explicit "
            "offsets: topic(..., starting={0: 4711})"
        )


def _several(sources: Iterable[Source]) -> list[str]:
    counted = Counter(source.name for source in sources)
    return [name for name, count in counted.items() if count > 1]
