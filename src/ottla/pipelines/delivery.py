"""Delivery by name: what a pipeline promises when it is killed and runs again.

- `at-most-once`: the batch's number is noted before its write; a noted batch is not written
  again. A kill may lose the batch under way. The sink skips what it has, as another run on a copy
  of the checkpoint may have written it.
- `at-least-once`: a batch that was cut off is written again. A kill may double it.
- `exactly-once`: a batch that was cut off is written again, and the sink skips what it has.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from ottla.pipelines.errors import PipelineError


class DeliveryGuarantee(StrEnum):
    """The three promises, the weakest first."""

    AT_MOST_ONCE = "at-most-once"
    AT_LEAST_ONCE = "at-least-once"
    EXACTLY_ONCE = "exactly-once"

    @property
    def doubles_nothing(self) -> bool:
        """Whether each row is in the sink once at most, also where a checkpoint has copies."""
        return self is not DeliveryGuarantee.AT_LEAST_ONCE


def read_guarantee(
    name: object, sink: str, offered: Collection[DeliveryGuarantee]
) -> DeliveryGuarantee:
    """Return the guarantee of this name. Raises PipelineError where the sink cannot promise it."""
    names = [str(one) for one in DeliveryGuarantee if one in offered]
    if name not in names:
        known = name in [str(one) for one in DeliveryGuarantee]
        reason = f"{sink} cannot promise {name}" if known else f"delivery={name!r} is unknown"
        raise PipelineError(f"{reason}: write {_alternatives(names)}")
    return DeliveryGuarantee(str(name))


def _alternatives(names: list[str]) -> str:
    quoted = [repr(name) for name in names]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
