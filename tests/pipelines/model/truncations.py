"""Truncations in the model: what Spark does with the rows of a batch, by the places of records.

Which truncation counts, what is noted of it and when, the shipped code decides.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.pipelines.model.spark import Frame

from ottla.pipelines.run import truncations
from ottla.pipelines.target.keyed_table import TRUNCATION, KeyedTable
from ottla.pipelines.target.truncation import WHOLE, Truncation, placed


def _place(frame: Frame, keyed: KeyedTable, row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(row[frame.columns.index(name)] for name in keyed.order)


def _place_of(truncation: Truncation) -> tuple[Any, ...]:
    order = json.loads(truncation.places[WHOLE])
    return tuple(order[name] for name in truncation.names)


def _read(
    frame: Frame, keyed: KeyedTable, noted: Truncation | None
) -> tuple[Truncation | None, int]:
    mark = frame.columns.index(TRUNCATION)
    left_out = [] if noted is None else [row for row in frame.rows if not row[mark]]
    older = sum(_place(frame, keyed, row) <= _place_of(noted) for row in left_out) if noted else 0
    places = [_place(frame, keyed, row) for row in frame.rows if row[mark]]
    if not places:
        return None, older
    order = json.dumps(dict(zip(keyed.order, max(places), strict=True)))
    return placed(frame.schema, keyed, {WHOLE: order}), older


def _later(_: Any, one: Truncation, other: Truncation | None) -> Truncation:
    return one if other is None else max(one, other, key=_place_of)


def after(frame: Frame, keyed: KeyedTable, truncation: Truncation | None) -> Frame:
    mark = frame.columns.index(TRUNCATION)
    rows = [row for row in frame.rows if not row[mark]]
    if truncation is not None:
        place = _place_of(truncation)
        rows = [row for row in rows if _place(frame, keyed, row) > place]
    columns = tuple(name for name in frame.columns if name != TRUNCATION)
    left = tuple((*row[:mark], *row[mark + 1 :]) for row in rows)
    return Frame(frame.sparkSession, left, columns)


def install_truncations(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(truncations, "read_truncations", _read)
    patch.setattr(truncations, "later", _later)
    patch.setattr(truncations, "after", after)
