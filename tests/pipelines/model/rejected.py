"""Rows that an expectation refuses, in the model: those whose offset a number divides.

The number can change between two runs. The shipped code decides what becomes of a batch that is
repeated; here are the marks of its rows, and `<target>_rejected`, which knows the last batch of
each query, as every target does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.pipelines.model.spark import Frame

from ottla.pipelines.rejects.decided import Decision
from ottla.pipelines.run import batch, begin, decisions, start
from ottla.pipelines.target.constraints import Asked, Constraint
from ottla.pipelines.target.expectations import Expectations

NUMBERS = (None, 2, 3)
"""What is expected of an offset: no number, 2 or 3 does not divide it."""


def expectations(each: int | None) -> Expectations:
    return Expectations(() if each is None else (("each", str(each)),))


@dataclass
class Beside:
    """`<target>_rejected`."""

    rows: tuple[Any, ...] = ()
    last: dict[str, int] = field(default_factory=dict)

    def copied(self) -> Beside:
        return Beside(self.rows, dict(self.last))


class ModelRejects:
    """`rejects.rejects.Rejects` where every row parses, and some are refused."""

    def __init__(self, *of: Any) -> None:
        self._session, self._path = of[0], of[0].world.path
        self.sources = of[3]
        self.told: dict[int, Any] = {}
        self.may_reject = False
        self.reason = None

    def written_until(self, execution: Any) -> dict[str, Any]:
        return {}

    def write(
        self, execution: Any, batch: Any, refused: Callable[[], Frame] | None, **_: Any
    ) -> None:
        rows = () if refused is None else refused().rows
        if not rows:
            return
        world = self._session.world
        world.steps.step(self._session)
        beside = world.beside(self._path)
        if beside.last.get(batch.query_id, -1) < batch.number or not batch.once:
            beside.last[batch.query_id] = batch.number
            beside.rows += tuple(rows)

    def recover(self, look_up: Any) -> None: ...

    def finish(self) -> None: ...


def _asking(frame: Frame, asked: Expectations) -> Frame:
    each = int(asked.conditions[0][1]) if asked.conditions else None
    return Frame(frame.sparkSession, frame.rows, each=each)


def _decision(_: Frame, marked: Frame, __: Any) -> Decision:
    conditions = () if marked.each is None else (Constraint(str(marked.each), "each"),)
    return Decision({}, "query", Asked(conditions))


def _mark_again(frame: Frame, asked: Asked) -> Frame:
    return Frame(frame.sparkSession, frame.rows, each=int(asked.conditions[0].condition))


def _is_refused(frame: Frame, row: Any) -> bool:
    offset: int = row[2]
    return frame.each is not None and offset % frame.each == 0


def _fitting(frame: Frame) -> Frame:
    rows = tuple(row for row in frame.rows if not _is_refused(frame, row))
    return Frame(frame.sparkSession, rows)


def _refused(frame: Frame) -> Frame:
    return Frame(frame.sparkSession, tuple(row for row in frame.rows if _is_refused(frame, row)))


def install_rejected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(start, "Rejects", ModelRejects)
    patch.setattr(begin, "expecting", _asking)
    patch.setattr(begin, "decision_of", _decision)
    patch.setattr(batch, "settled", lambda frame: frame)
    for module in (batch, decisions):
        patch.setattr(module, "unasked", lambda frame: Frame(frame.sparkSession, frame.rows))
    patch.setattr(batch, "is_marked", lambda frame: frame.each is not None)
    patch.setattr(decisions, "mark_again", _mark_again)
    patch.setattr(batch, "fitting", _fitting)
    patch.setattr(batch, "refused", _refused)
